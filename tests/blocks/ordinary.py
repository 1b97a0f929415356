# Ordinary blocks of the five types. After the two percent signs: id | type | note. CPython itself says what each must give.
# %% a01 | Atomic | the whole reply
result = call_tool("shop", "get_product", {"sku": "P03"})
# %% a02 | Atomic | keywords
result = call_tool(server_name="geo", tool_name="geocode", params={"address": "Osaka"})["result"]["location"]
# %% a03 | Atomic | short keywords
result = call_tool(server="shop", tool="convert", params={"amount": 10, "currency": "JPY"})["result"]["amount"]
# %% a04 | Atomic | await
r = await call_tool("shop", "get_product", {"sku": "P11"})
result = r["result"]["name"].title()
# %% a05 | Atomic | return
return call_tool("geo", "zone", {"city": "Lisbon"})["result"]
# %% a06 | Atomic | no parameters
result = call_tool("geo", "cities")["result"]
# %% a07 | Atomic | status is a bool
r = call_tool("shop", "get_product", {"sku": "P05"})
result = "found" if r["status"] is True else "missing"
# %% a08 | Atomic | json.loads on a value that is already parsed
import json
result = json.loads(call_tool("shop", "search_products", {"query": "desk"})["result"])[0]["sku"]
# %% a09 | Atomic | json.loads on the whole reply
import json
result = json.loads(call_tool("shop", "get_product", {"sku": "P02"}))["result"]["price"]
# %% a10 | Atomic | JSON in text, used directly
result = len(call_tool("shop", "search_products", {"query": "lamp"})["result"])
# %% a11 | Atomic | leading zeros stay text
result = call_tool("misc", "scalar", {"form": "007"})["result"]
# %% a12 | Atomic | words and numbers in text stay text
result = [call_tool("misc", "scalar", {"form": f})["result"] for f in ("true", "1e5", "null", "3.10", "NaN")]
# %% a13 | Atomic | a nested default
r = call_tool("geo", "distances", {"origins": ["Osaka"], "destinations": ["Atlantis"]})["result"]
result = r["rows"][0]["elements"][0].get("distance", {}).get("text", "unknown")
# %% a14 | Atomic | non-ASCII arguments and results
r = call_tool("geo", "geocode", {"address": "Avenida Paulista, São Paulo"})["result"]
result = f"{r['formatted_address']} \N{RIGHTWARDS ARROW} {r['country']}"
# %% a15 | Atomic | a caught failure
try:
    result = call_tool("shop", "get_product", {"sku": "P99"})
except ToolError as error:
    result = f"none: {error}"
# %% c01 | Chaining | one reply's field is the next call's argument
city = call_tool("geo", "geocode", {"address": "1 Rua Augusta, Lisbon"})["result"]["formatted_address"]
result = call_tool("geo", "zone", {"city": city})["result"]
# %% c02 | Chaining | text price to a converted sum
price = float(call_tool("shop", "get_product", {"sku": "P07"})["result"]["price"])
result = call_tool("shop", "convert", {"amount": price, "currency": "SGD"})["result"]["amount"]
# %% c03 | Chaining | search, detail, convert
first = call_tool("shop", "search_products", {"query": "chair"})["result"][0]
detail = call_tool("shop", "get_product", {"sku": first["sku"]})["result"]
total = float(detail["price"]) * detail["stock"]
result = {"sku": detail["sku"], "eur": call_tool("shop", "convert", {"amount": total, "currency": "EUR"})["result"]["amount"]}
# %% c04 | Chaining | a file names the next step
import base64, json
text = base64.b64decode(call_tool("docs", "read_file", {"path": "app/settings.json"})["result"]["content"]).decode()
name = sorted(json.loads(text)["depends"])[0]
result = call_tool("docs", "summary", {"topic": name})["result"]
# %% c05 | Chaining | a list, then its largest element
files = call_tool("docs", "list_folder", {"path": "app"})["result"]
biggest = max(files, key=lambda f: f["size"])
result = call_tool("docs", "read_text", {"path": biggest["path"]})["result"].count("\n")
# %% c06 | Chaining | walrus and a conditional call
if (hit := call_tool("shop", "search_products", {"query": "green desk"})["result"]):
    result = call_tool("shop", "get_product", {"sku": hit[-1]["sku"]})["result"]["added"]
else:
    result = None
# %% c07 | Chaining | fallback after an empty search
found = call_tool("shop", "search_products", {"query": "purple"})["result"]
if not found:
    found = call_tool("shop", "search_products", {"query": "blue"})["result"]
result = [p["sku"] for p in found]
# %% c08 | Chaining | first guess wrong, second right
for guess in ("Atlantis", "El Dorado", "Singapore", "Osaka"):
    try:
        place = call_tool("geo", "geocode", {"address": guess})["result"]
        break
    except ToolError:
        continue
result = place["country"]
# %% c09 | Chaining | await in a chain, return at the end
city = (await call_tool("geo", "cities"))["result"][-1]
found = await call_tool("geo", "geocode", {"address": city})
return {"city": city, "lat": found["result"]["location"]["lat"]}
# %% c10 | Chaining | great-circle distance by hand
import math
a, b = (call_tool("geo", "geocode", {"address": c})["result"]["location"] for c in ("Lisbon", "New York"))
p, q = math.radians(a["lat"]), math.radians(b["lat"])
h = math.sin((q - p) / 2) ** 2 + math.cos(p) * math.cos(q) * math.sin(math.radians(b["lng"] - a["lng"]) / 2) ** 2
result = round(2 * 6371 * math.asin(math.sqrt(h)), 1)
# %% c11 | Chaining | match statement on a reply
match call_tool("geo", "distances", {"origins": ["Osaka"], "destinations": ["Lisbon"]})["result"]:
    case {"rows": [{"elements": [{"status": "OK", "distance": {"value": metres}}]}]}:
        result = metres // 1000
    case _:
        result = "unreachable"
# %% c12 | Chaining | nested functions and nonlocal
def walk():
    calls = 0
    def geocode(address):
        nonlocal calls
        calls += 1
        return call_tool("geo", "geocode", {"address": address})["result"]["country"]
    return [geocode("Osaka"), geocode("Lisbon")], calls
countries, n = walk()
result = {"countries": countries, "calls": n}
# %% c13 | Chaining | paging until the last page
page, skus = 1, []
while True:
    reply = call_tool("shop", "list_products", {"page": page, "per_page": 10})["result"]
    skus += [p["sku"] for p in reply["items"]]
    if page >= reply["pages"]:
        break
    page += 1
result = [len(skus), skus[0], skus[-1]]
# %% t01 | Transform | CSV with quoted numbers
import csv, io
text = call_tool("docs", "read_text", {"path": "data/sales.csv"})["result"]
rows = [(r["city"], float(r["amount"].replace(",", ""))) for r in csv.DictReader(io.StringIO(text))]
result = {"n": len(rows), "rows": sorted(rows)}
# %% t02 | Transform | regular expressions over prose
import re
text = call_tool("docs", "summary", {"topic": "ACME"})["result"]
result = {"year": int(re.search(r"founded (\d{4})", text)[1]), "staff": int(re.search(r"staff: ([\d,]+)", text)[1].replace(",", ""))}
# %% t03 | Transform | HTML entities and links
import html, re
page = call_tool("docs", "read_text", {"path": "site/index.html"})["result"]
result = [(html.unescape(a), html.unescape(b)) for a, b in re.findall(r"<a href='([^']+)'>([^<]+)</a>", page)]
# %% t04 | Transform | HTML parser class
from html.parser import HTMLParser
class Heads(HTMLParser):
    def __init__(self):
        super().__init__()
        self.inside, self.found = False, []
    def handle_starttag(self, tag, attrs):
        self.inside = tag == "h1"
    def handle_data(self, data):
        if self.inside:
            self.found.append(data.strip())
            self.inside = False
parser = Heads()
parser.feed(call_tool("docs", "read_text", {"path": "site/index.html"})["result"])
result = parser.found
# %% t05 | Transform | base64 and hashes
import base64, hashlib
raw = base64.b64decode(call_tool("docs", "read_file", {"path": "notes.txt"})["result"]["content"])
result = hashlib.sha256(raw).hexdigest()[:16]
# %% t06 | Transform | decimals and rounding
from decimal import Decimal, ROUND_HALF_EVEN
prices = [Decimal(p["price"]) for p in call_tool("shop", "list_products", {"per_page": 23})["result"]["items"]]
result = str((sum(prices) / len(prices)).quantize(Decimal("0.01"), ROUND_HALF_EVEN))
# %% t07 | Transform | time zones
from datetime import datetime
from zoneinfo import ZoneInfo
added = datetime.fromisoformat(call_tool("shop", "get_product", {"sku": "P06"})["result"]["added"])
local = added.astimezone(ZoneInfo(call_tool("geo", "zone", {"city": "São Paulo"})["result"]))
result = [local.isoformat(), local.strftime("%a %d %b %Y"), local.utcoffset().total_seconds()]
# %% t08 | Transform | date arithmetic
from datetime import date, timedelta
items = call_tool("shop", "list_products", {"per_page": 23})["result"]["items"]
days = sorted(date.fromisoformat(i["added"][:10]) for i in items)
result = {"span": (days[-1] - days[0]).days, "quarter ago": (days[-1] - timedelta(weeks=13)).isoformat()}
# %% t09 | Transform | a format-spec zoo
p = call_tool("shop", "get_product", {"sku": "P09"})["result"]
v = float(p["price"]) * 1234.5
result = [f"{v:,.2f}", "%08.3f" % v, "{:>12}|{:<6}|{:^9}".format(p["sku"], p["stock"], "mid"), f"{v:e}", f"{0.256:.1%}", f"{255:#x}"]
# %% t10 | Transform | text wrapping, templates, templates' names
import string, textwrap
text = call_tool("docs", "read_text", {"path": "notes.txt"})["result"]
result = [textwrap.shorten(text, 40), string.Template("$a-${b}").substitute(a=1, b="x"), textwrap.fill(text, 30).splitlines()[0]]
# %% t11 | Transform | Unicode normalisation
import unicodedata
names = call_tool("geo", "cities")["result"]
result = ["".join(c for c in unicodedata.normalize("NFD", n) if not unicodedata.combining(c)) for n in names]
# %% t12 | Transform | URLs
from urllib.parse import urlencode, urljoin, urlsplit, parse_qs, quote
city = call_tool("geo", "cities")["result"][2]
url = urljoin("https://example.org/a/b", "../c?" + urlencode({"q": city, "n": [1, 2]}, doseq=True))
result = [url, parse_qs(urlsplit(url).query), quote(city)]
# %% t13 | Transform | JSON written and read again
import json
p = call_tool("shop", "get_product", {"sku": "P10"})["result"]
text = json.dumps(p, sort_keys=True, indent=1, ensure_ascii=False)
result = [json.loads(text) == p, len(text), json.dumps({"é": 1})]
# %% t14 | Transform | a Python file's syntax tree
import ast
tree = ast.parse(call_tool("docs", "read_text", {"path": "app/main.py"})["result"])
result = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
# %% g01 | Aggregate | a sum over pages
total = 0.0
for page in range(1, call_tool("shop", "list_products")["result"]["pages"] + 1):
    total += sum(float(p["price"]) * p["stock"] for p in call_tool("shop", "list_products", {"page": page})["result"]["items"])
result = round(total, 2)
# %% g02 | Aggregate | Counter
from collections import Counter
items = call_tool("shop", "list_products", {"per_page": 50})["result"]["items"]
result = Counter(tag for p in items for tag in p["tags"]).most_common(2)
# %% g03 | Aggregate | groups by a key
from itertools import groupby
from operator import itemgetter
items = [{"color": p["name"].split()[0], "stock": p["stock"]} for p in call_tool("shop", "list_products", {"per_page": 50})["result"]["items"]]
items.sort(key=itemgetter("color"))
result = {color: sum(p["stock"] for p in group) for color, group in groupby(items, key=itemgetter("color"))}
# %% g04 | Aggregate | statistics
import statistics
prices = [float(p["price"]) for p in call_tool("shop", "list_products", {"per_page": 50})["result"]["items"]]
result = [round(f(prices), 3) for f in (statistics.mean, statistics.median, statistics.pstdev)]
# %% g05 | Aggregate | parallel calls keep order
calls = [("shop", "get_product", {"sku": f"P{n:02d}"}) for n in range(1, 21)]
result = [r["result"]["stock"] for r in call_tools(calls)]
# %% g06 | Aggregate | parallel calls with errors as values
replies = call_tools([("shop", "get_product", {"sku": s}) for s in ("P01", "P77", "P02")], return_errors=True)
result = [str(r) if isinstance(r, ToolError) else r["result"]["sku"] for r in replies]
# %% g07 | Aggregate | asyncio.gather of calls
import asyncio
replies = await asyncio.gather(*[call_tool("geo", "zone", {"city": c}) for c in ("Osaka", "Lisbon")])
result = [r["result"] for r in replies]
# %% g08 | Aggregate | gather of coroutines that call
import asyncio
async def price(sku):
    reply = await call_tool("shop", "get_product", {"sku": sku})
    await asyncio.sleep(0)
    return float(reply["result"]["price"])
async def main():
    return sum(await asyncio.gather(*(price(f"P{n:02d}") for n in range(1, 6))))
result = asyncio.run(main())
# %% g09 | Aggregate | threads
from concurrent.futures import ThreadPoolExecutor
def stock(n):
    return call_tool("shop", "get_product", {"sku": f"P{n:02d}"})["result"]["stock"]
with ThreadPoolExecutor(max_workers=4) as pool:
    result = list(pool.map(stock, range(1, 16)))
# %% g10 | Aggregate | calls inside a sort key
result = sorted(call_tool("geo", "cities")["result"], key=lambda c: call_tool("geo", "geocode", {"address": c})["result"]["location"]["lat"])
# %% g11 | Aggregate | calls inside comprehensions of three kinds
cities = call_tool("geo", "cities")["result"]
by = {c: call_tool("geo", "geocode", {"address": c})["result"]["country"] for c in cities}
result = [by, sorted({call_tool("geo", "zone", {"city": c})["result"].split("/")[0] for c in cities}), sum(1 for c in cities if call_tool("geo", "geocode", {"address": c})["result"]["location"]["lat"] > 0)]
# %% g12 | Aggregate | a heap of the cheapest
import heapq
items = call_tool("shop", "list_products", {"per_page": 50})["result"]["items"]
result = [p["sku"] for p in heapq.nsmallest(3, items, key=lambda p: (float(p["price"]), p["sku"]))]
# %% g13 | Aggregate | join of two servers
near = {}
for city in ("Osaka", "Lisbon"):
    row = call_tool("geo", "distances", {"origins": [city], "destinations": ["Singapore", "New York"]})["result"]["rows"][0]
    near[city] = min(e["distance"]["value"] for e in row["elements"])
result = {c: call_tool("shop", "convert", {"amount": m / 1000, "currency": "EUR"})["result"]["amount"] for c, m in near.items()}
# %% g14 | Aggregate | 0, 1 and 2 rows are all lists
result = [[type(call_tool("misc", "rows", {"count": n})["result"]).__name__, len(call_tool("misc", "rows", {"count": n})["result"])] for n in (0, 1, 2)]
# %% g15 | Aggregate | map, filter, reduce, zip
from functools import reduce
rows = call_tool("misc", "rows", {"count": 8})["result"]
even = filter(lambda r: r["id"] % 2 == 0, rows)
result = [reduce(lambda a, r: a + r["square"], even, 0), list(zip(map(lambda r: r["id"], rows[:3]), "abc", strict=True))]
# %% g16 | Aggregate | a matrix and its best pair
names = call_tool("geo", "cities")["result"]
rows = call_tool("geo", "distances", {"origins": names, "destinations": names})["result"]["rows"]
pairs = [(rows[i]["elements"][j]["distance"]["value"], a, b) for i, a in enumerate(names) for j, b in enumerate(names) if i < j]
result = {"closest": min(pairs)[1:], "farthest": max(pairs)[1:]}
# %% h01 | Helper | a dataclass with a property
from dataclasses import dataclass, asdict
@dataclass(frozen=True, order=True)
class Item:
    price: float
    sku: str
    @property
    def cheap(self) -> bool:
        return self.price < 30
items = sorted(Item(float(p["price"]), p["sku"]) for p in call_tool("shop", "list_products", {"per_page": 9})["result"]["items"])
result = [asdict(items[0]), [i.sku for i in items if i.cheap]]
# %% h02 | Helper | a cache
from functools import lru_cache
made = []
@lru_cache
def country(city):
    made.append(city)
    return call_tool("geo", "geocode", {"address": city})["result"]["country"]
result = [[country(c) for c in ("Osaka", "Osaka", "Lisbon")], made]
# %% h03 | Helper | retry decorator
import functools
def retry(times):
    def wrap(f):
        @functools.wraps(f)
        def inner(*args):
            for attempt in range(times):
                try:
                    return f(*args)
                except ToolError as error:
                    last = str(error)
            return f"{f.__name__} failed {times} times: {last}"
        return inner
    return wrap
@retry(3)
def get(sku):
    return call_tool("shop", "get_product", {"sku": sku})["result"]["sku"]
result = [get("P01"), get("nope")]
# %% h04 | Helper | generator over pages
def products(size=6):
    page = 1
    while True:
        reply = call_tool("shop", "list_products", {"page": page, "per_page": size})["result"]
        yield from reply["items"]
        if page == reply["pages"]:
            return
        page += 1
from itertools import islice
result = [p["sku"] for p in islice(products(), 8)]
# %% h05 | Helper | recursion
def flatten(value, path=""):
    if isinstance(value, dict):
        return {k: v for key, item in value.items() for k, v in flatten(item, f"{path}.{key}").items()}
    return {path[1:]: value}
result = flatten(call_tool("misc", "echo", {"value": {"a": {"b": 1, "c": {"d": 2}}, "e": 3}})["result"])
# %% h06 | Helper | classes, inheritance, context manager
from contextlib import contextmanager
log = []
@contextmanager
def step(name):
    log.append(f"+{name}")
    try:
        yield name.upper()
    finally:
        log.append(f"-{name}")
class Shop:
    name = "shop"
    def call(self, tool, **params):
        return call_tool(self.name, tool, params)["result"]
class Cheap(Shop):
    def first(self):
        return min(super().call("list_products", per_page=50)["items"], key=lambda p: float(p["price"]))["sku"]
with step("find") as title:
    result = {"title": title, "sku": Cheap().first(), "log": log}
# %% h07 | Helper | enum and typing
from enum import Enum
from typing import NamedTuple, Optional, TypedDict
class Size(Enum):
    SMALL = "s"
    LARGE = "l"
class Row(NamedTuple):
    sku: str
    size: Size
def size(p: dict) -> Optional[Size]:
    return Size.LARGE if "bulky" in p["tags"] else Size.SMALL
rows = [Row(p["sku"], size(p)) for p in call_tool("shop", "list_products")["result"]["items"]]
result = [[r.sku, r.size.value] for r in rows]
# %% h08 | Helper | exceptions of one's own, else and finally
class Missing(LookupError):
    pass
trace = []
def need(sku):
    try:
        p = call_tool("shop", "get_product", {"sku": sku})["result"]
    except ToolError as error:
        raise Missing(sku) from error
    else:
        trace.append(p["sku"])
        return p["stock"]
    finally:
        trace.append("tried " + sku)
try:
    need("P01")
    need("P00")
except Missing as error:
    result = [trace, repr(error), str(error.__cause__)]
# %% h09 | Helper | fractions, big integers, complex arithmetic
from fractions import Fraction
n = call_tool("shop", "list_products")["result"]["total"]
result = [str(sum(Fraction(1, k) for k in range(1, n))), 3**n % 1000, 2**100, -7 // 2, -7 % 3, round(2.5), round(-0.5), abs(3 + 4j)]
# %% h10 | Helper | string methods and slices
text = call_tool("docs", "read_text", {"path": "notes.txt"})["result"]
result = [text.splitlines()[0].partition(": ")[2], text[::-1].strip()[:5], "x".join("abc"), "a,b,,c".split(","), text.casefold().count("todo"), "ǅ".swapcase(), "ß".upper()]
# %% h11 | Helper | deque, defaultdict, OrderedDict, ChainMap, bisect
import bisect
from collections import ChainMap, OrderedDict, defaultdict, deque
seen, queue = defaultdict(list), deque(call_tool("misc", "rows", {"count": 6})["result"], maxlen=4)
for row in queue:
    seen[row["id"] % 2].append(row["square"])
result = [dict(seen), bisect.bisect([1, 4, 9], 5), dict(ChainMap({"a": 1}, {"a": 2, "b": 3})), list(OrderedDict(b=1, a=2))]
# %% h12 | Helper | star arguments, unpacking, chained comparison, global
count = 0
def tally(*skus, currency="EUR", **more):
    global count
    count += len(skus)
    first, *rest = skus
    return {"first": first, "rest": rest, "currency": currency, **more}
result = {**tally("P01", "P02", "P03", note=call_tool("geo", "zone", {"city": "Osaka"})["result"]), "count": count, "between": 1 < count <= 3}
# %% h13 | Helper | seeded random and shuffles
import random
rng = random.Random(7)
skus = [p["sku"] for p in call_tool("shop", "list_products")["result"]["items"]]
result = [rng.randint(1, 100), rng.sample(skus, 3), random.Random(7).choice(skus)]
# %% h14 | Helper | async generator, async with, async comprehension
import asyncio
class Session:
    async def __aenter__(self):
        return self
    async def __aexit__(self, *error):
        return False
    async def pages(self):
        for page in (1, 2):
            yield (await call_tool("shop", "list_products", {"page": page}))["result"]["items"]
async with Session() as session:
    result = [p["sku"] async for items in session.pages() for p in items][:7]
