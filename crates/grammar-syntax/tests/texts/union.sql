select distinct name, RANK() over (partition by team order by score desc) as place from players
union all
select * from (select id, name from guests where name like 'A%') as g join cities on g.id = cities.guest
