-- what each region sold
SELECT region, SUM(amount) AS total, COUNT(DISTINCT customer) buyers,
       CASE WHEN amount > 100 THEN 1 ELSE 2 END AS size
FROM orders LEFT JOIN customers ON orders.customer = customers.id
WHERE status = 'paid' AND amount BETWEEN 10 AND 500 AND region IN ('north', 'south') AND note IS NOT NULL
GROUP BY region, size
HAVING total >= 1000
ORDER BY total DESC, region ASC
LIMIT 10 OFFSET 20;
