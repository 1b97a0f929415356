"""A small deterministic world for test blocks: plain functions for the CPython twin, and real MCP servers.

python world.py shop          # one server over stdio: shop, geo, docs or misc
"""

from __future__ import annotations

import base64
import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PRODUCTS = [
    {
        "sku": f"P{n:02d}",
        "name": f"{('red', 'blue', 'green')[n % 3]} {('lamp', 'chair', 'desk', 'shelf')[n % 4]}",
        "price": f"{(n * 37 % 90) + 9.5:.2f}",  # text, as many services send money
        "stock": n * 7 % 11,
        "tags": [t for t in ("new", "sale", "bulky") if (n + len(t)) % 3 == 0],
        "added": f"2024-{n % 12 + 1:02d}-{n % 28 + 1:02d}T08:30:00+00:00",
    }
    for n in range(1, 24)
]
CITIES = {
    "Singapore": (1.3521, 103.8198, "SG", "Asia/Singapore"),
    "Lisbon": (38.7223, -9.1393, "PT", "Europe/Lisbon"),
    "São Paulo": (-23.5505, -46.6333, "BR", "America/Sao_Paulo"),
    "Osaka": (34.6937, 135.5023, "JP", "Asia/Tokyo"),
    "New York": (40.7128, -74.006, "US", "America/New_York"),
}
FILES = {
    "app/settings.json": '{"name": "demo", "debug": false, "workers": 4, "depends": {"b": "2.0", "a": "1.10"}}',
    "app/main.py": "import sys\n\n\ndef main() -> int:\n    return 0\n\n\n"
    "if __name__ == '__main__':\n    sys.exit(main())\n",
    "data/sales.csv": 'day,city,amount\n2024-03-01,Lisbon,"1,200.50"\n2024-03-01,Osaka,80\n2024-03-02,Lisbon,19.5\n'
    "2024-03-03,Osaka,400\n2024-03-03,New York,7\n",
    "site/index.html": "<html><body><h1>Prices &amp; terms</h1><ul><li><a href='/a?x=1&amp;y=2'>A</a></li>"
    "<li><a href='/b'>B&eacute;</a></li></ul></body></html>",
    "notes.txt": "TODO: call 555-0100 before 09:15\nDone: paid $1,250.00 to ACME (ref AB-1207)\nTODO: order 3 lamps\n",
}


def list_products(page: int = 1, per_page: int = 5) -> dict[str, Any]:
    first = (page - 1) * per_page
    pages = math.ceil(len(PRODUCTS) / per_page)
    return {"items": PRODUCTS[first : first + per_page], "page": page, "pages": pages, "total": len(PRODUCTS)}


def get_product(sku: str) -> dict[str, Any]:
    for product in PRODUCTS:
        if product["sku"] == sku:
            return product
    raise ToolError(f"no product {sku}")


def search_products(query: str) -> str:
    """JSON in text, as many servers send it."""
    return json.dumps([p for p in PRODUCTS if query.lower() in str(p["name"])])


def convert(amount: float, currency: str) -> dict[str, Any]:
    rates = {"EUR": 0.92, "JPY": 151.25, "SGD": 1.35}
    if currency not in rates:
        raise ToolError(f"unknown currency {currency}")
    return {"amount": round(amount * rates[currency], 4), "currency": currency}


def geocode(address: str) -> dict[str, Any]:
    for name, (lat, lng, country, _) in CITIES.items():
        if name.lower() in address.lower():
            return {"formatted_address": name, "location": {"lat": lat, "lng": lng}, "country": country}
    raise ToolError(f"ZERO_RESULTS for {address}")


def distances(origins: list[str], destinations: list[str]) -> dict[str, Any]:
    def element(a: str, b: str) -> dict[str, Any]:
        if a not in CITIES or b not in CITIES:
            return {"status": "NOT_FOUND"}
        (y1, x1, *_), (y2, x2, *_) = CITIES[a], CITIES[b]
        metres = round(math.hypot(y1 - y2, x1 - x2) * 111_000)
        return {"status": "OK", "distance": {"text": f"{metres / 1000:,.1f} km", "value": metres}}

    return {"rows": [{"elements": [element(a, b) for b in destinations]} for a in origins]}


def zone(city: str) -> str:
    return CITIES[city][3]


def cities() -> list[str]:
    return list(CITIES)


def read_file(path: str) -> dict[str, Any]:
    if path not in FILES:
        raise ToolError(f"ENOENT: {path}")
    return {"path": path, "encoding": "base64", "content": base64.b64encode(FILES[path].encode()).decode()}


def list_folder(path: str = "") -> list[dict[str, Any]]:
    return [{"path": name, "size": len(text.encode())} for name, text in FILES.items() if name.startswith(path)]


def read_text(path: str) -> str:
    return FILES[path]


def summary(topic: str) -> str:
    return f"Summary of {topic}: founded 1912; staff: 3,400 (2023). Rated 4.5/5 by 120 readers."


def echo(value: dict[str, Any]) -> dict[str, Any]:
    return value


def scalar(form: str) -> str:
    """A scalar in text, which stays text."""
    return form


def rows(count: int) -> list[dict[str, int]]:
    return [{"id": n, "square": n * n} for n in range(count)]


def fail(text: str = "boom") -> str:
    raise ToolError(text)


def pause(seconds: float, value: int = 0) -> dict[str, int]:
    time.sleep(seconds)
    return {"value": value}


def flood(megabytes: int) -> str:
    return "x" * (megabytes * 1_000_000)


TOOLS: dict[str, list[Callable[..., Any]]] = {
    "shop": [list_products, get_product, search_products, convert],
    "geo": [geocode, distances, zone, cities],
    "docs": [read_file, list_folder, read_text, summary],
    "misc": [echo, scalar, rows, fail, pause, flood],
}


if __name__ == "__main__":
    server = MCPServer(sys.argv[1])
    for function in TOOLS[sys.argv[1]]:
        structured = False if function in (search_products, zone, read_text, summary, scalar, flood) else None
        server.add_tool(function, structured_output=structured)
    server.run("stdio")
