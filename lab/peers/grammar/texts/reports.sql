SELECT regions.country, regions.name AS region, SUM(orders.amount) AS total, COUNT(DISTINCT orders.customer) AS buyers,
       -- with its place among the regions of its country
       AVG(orders.amount) AS typical, MAX(orders.placed) latest,
       RANK() OVER (PARTITION BY regions.country ORDER BY total DESC) AS place,
       CASE WHEN orders.amount > 1000 THEN 'large' WHEN orders.amount > 100 THEN 'medium' ELSE 'small' END AS size
FROM orders
LEFT OUTER JOIN customers ON orders.customer = customers.id
INNER JOIN regions ON customers.region = regions.id
WHERE orders.status = 'paid' AND orders.placed >= '2024-01-01' AND orders.placed < '2025-01-01'
  AND orders.amount BETWEEN 10 AND 50000
  AND regions.name NOT IN ('test', 'internal', 'unknown')
  AND customers.email IS NOT NULL
  AND customers.email NOT LIKE '%@example.com'
GROUP BY regions.country, regions.name, size
HAVING total >= 1000 AND buyers > 3
ORDER BY total DESC, regions.country ASC, regions.name
LIMIT 100 OFFSET 20

UNION ALL

SELECT DISTINCT archive.country, archive.region, archive.total, archive.buyers, archive.typical,
       archive.latest, archive.place, COALESCE(archive.size, archive.guess, 'unknown')
FROM (SELECT country, region, SUM(amount) AS total, COUNT(DISTINCT customer) AS buyers, AVG(amount) AS typical,
             MAX(placed) AS latest, DENSE_RANK() OVER (ORDER BY amount DESC) AS place,
             CAST(kind AS varchar) AS size, note AS guess
      FROM orders_archive
      WHERE year IN (2019, 2020, 2021, 2022, 2023) AND (status = 'paid' OR status = 'settled')
      GROUP BY country, region, size, guess) AS archive
WHERE archive.total <> 2 AND archive.buyers != 1

UNION

-- running balances
SELECT accounts.country, accounts.id, balance + fees * 2 - refunds / 4, transfers,
       SUM(movements.amount) OVER (PARTITION BY accounts.id, accounts.currency ORDER BY movements.booked ASC
           ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running,
       AVG(movements.amount) OVER (PARTITION BY accounts.id ORDER BY movements.booked
           ROWS BETWEEN 6 PRECEDING AND 1 FOLLOWING) AS week,
       MIN(movements.amount) OVER (ORDER BY movements.booked DESC RANGE UNBOUNDED PRECEDING) AS least,
       CAST(movements.amount AS int64) AS whole
FROM accounts, movements, currencies
WHERE accounts.id = movements.account AND movements.booked <= NOW()
  AND currencies.code = accounts.currency
  AND EXISTS (SELECT limits.id FROM limits WHERE limits.account = accounts.id AND limits.most > movements.amount)

EXCEPT

SELECT country, id, balance, transfers, running, week, least, whole
FROM frozen_accounts FULL OUTER JOIN holds ON frozen_accounts.id = holds.account
WHERE id IN (SELECT account FROM seizures WHERE lifted IS NULL AND started > TODAY())
  AND id NOT IN (SELECT account FROM appeals WHERE decided = TRUE)

INTERSECT DISTINCT

select "country", "id", b.balance, b.transfers, b.running, b.week, b.least, b.*
from balances as b right join "currency rates" as rates on b.currency = rates."from"
where rates.rate * 1.25 >= 3.5 and b.balance / rates.rate - 100 < 2500
order by b.balance desc, "id"
limit 50;
