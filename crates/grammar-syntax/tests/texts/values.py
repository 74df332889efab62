import os, sys as system
from math import sqrt, pi as circle
x = y = [n ** 2 for n in range(10) if n % 2 == 0]
total: float = 1.5e3 + 0x1F - 0b101 * 7_000j
name = "quoted \"text\"" 'and more' r'raw\d'
table = {"a": 1, 'b': [2, 3], **rest}
pick = first if total > 3 and not done else lambda a, *b, c=2: a @ b  # chosen
x[1:2, ::3], other.value = call(1, *args, key=value, **more), (yield_ := 4)
del x; assert y is not None, f"why {y}"
async_result = await_ or (await fetch())
while x: x = x - 1
