select shop, count(*) as n, sum(amount) as total from {{ source('raw', 'sales') }} group by shop
