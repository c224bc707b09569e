-- SPDX-License-Identifier: Apache-2.0
-- What a shop wants to know of its sales now and then.
CREATE TABLE sales AS
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200000)
  SELECT i AS id, i * 7919 % 1009 AS product, 100 + i * 31 % 90000 AS cents FROM n;
SELECT product, count(*) AS sold, sum(cents) / 100 AS turnover FROM sales GROUP BY product ORDER BY turnover DESC LIMIT 10;
