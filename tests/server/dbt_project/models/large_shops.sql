select shop, total from {{ ref('per_shop') }} where total > 5
