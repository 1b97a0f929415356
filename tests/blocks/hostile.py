# Hostile blocks. After the two percent signs: id | category | outcomes allowed (error kinds; ok: it ended and touched nothing)
# | note. FOLDER, PORT, PID and SOCKET stand for a folder, a listening port, a process and a Unix socket of the host.
# %% cpu1 | cpu | cpu_limit | a loop
while True:
    pass
result = 1
# %% cpu2 | cpu | cpu_limit,crashed | one long C call
result = sum(range(10**12))
# %% cpu3 | cpu | cpu_limit,crashed | backtracking
import re
result = bool(re.match(r"(x+x+)+y", "x" * 60))
# %% cpu4 | cpu | cpu_limit,crashed | a huge power
result = len(str(7 ** (7 ** 9))) if 7 ** (7 ** 10) else 0
# %% cpu5 | cpu | cpu_limit,crashed | exceptions swallowed
result = 0
while True:
    try:
        while True:
            result += 1
    except BaseException:
        continue
# %% cpu6 | cpu | cpu_limit,crashed | the signal ignored
import signal
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
result = 0
while True:
    result += 1
# %% cpu7 | cpu | cpu_limit,crashed,wall_limit | many busy threads
import threading
def spin():
    while True:
        pass
threads = [threading.Thread(target=spin) for _ in range(6)]
for t in threads:
    t.start()
for t in threads:
    t.join()
result = 1
# %% cpu8 | cpu | wall_limit | sleep
import time
time.sleep(3600)
result = 1
# %% cpu9 | cpu | wall_limit | a lock that nobody frees
import threading
lock = threading.Lock()
lock.acquire()
lock.acquire()
result = 1
# %% cpu10 | cpu | wall_limit | an event loop without an end
import asyncio
await asyncio.Event().wait()
result = 1
# %% mem1 | memory | memory_limit | a huge list
result = len([0] * 10**10)
# %% mem2 | memory | memory_limit | doubling text
text = "x"
while True:
    text += text
result = text
# %% mem3 | memory | memory_limit,cpu_limit,crashed | memory errors swallowed
kept = []
result = 1
while True:
    try:
        kept.append(bytearray(10**7))
    except MemoryError:
        pass
# %% mem4 | memory | memory_limit,cpu_limit,crashed | small objects
kept = {}
n = 0
while True:
    kept[n] = [n] * 50
    n += 1
result = n
# %% mem5 | memory | memory_limit,crashed,runtime | an anonymous mapping
import mmap
result = len(mmap.mmap(-1, 8 * 2**30))
# %% mem6 | memory | runtime,cpu_limit,memory_limit,crashed | a decompression bomb
import zlib
bomb = zlib.compress(bytes(10**8), 9)
for _ in range(20):
    data = zlib.decompress(bomb) * 20
result = len(data)
# %% deep1 | stack | runtime | recursion
def down(n):
    return down(n + 1) + 1
result = down(0)
# %% deep2 | stack | runtime,crashed,cpu_limit | recursion with the limit taken away
import sys
sys.setrecursionlimit(10**9)
def down(n):
    return down(n + 1) + 1
result = down(0)
# %% deep3 | stack | runtime,result_type,crashed | a result that contains itself
result = []
result.append(result)
# %% deep4 | stack | runtime,result_type | a deep result
result = {}
for _ in range(5000):
    result = {"k": result}
# %% deep5 | stack | runtime,crashed | deep JSON text
import json
result = json.loads("[" * 10**6)
# %% deep6 | stack | syntax,runtime,crashed | deep source text
result = eval("(" * 5000 + "1" + ")" * 5000)
# %% deep7 | stack | ok,crashed,runtime,cpu_limit | a destructor chain
class Node:
    def __init__(self, next):
        self.next = next
    def __del__(self):
        self.next = None
node = None
for _ in range(10**6):
    node = Node(node)
del node
result = 1
# %% file1 | files | runtime | the password file
result = open("/etc/passwd").read()
# %% file2 | files | runtime | the canary is read
result = open("FOLDER/secret.txt").read()
# %% file3 | files | runtime | the canary is written
open("FOLDER/secret.txt", "w").write("overwritten")
result = 1
# %% file4 | files | runtime | a file is made
import pathlib
pathlib.Path("FOLDER/made.txt").write_text("made")
result = 1
# %% file5 | files | ok | everything of os that changes files
import os
done = []
for name, arguments in [("mkdir", ("FOLDER/d",)), ("remove", ("FOLDER/secret.txt",)), ("rename", ("FOLDER/secret.txt", "FOLDER/x")),
                        ("symlink", ("FOLDER/secret.txt", "FOLDER/l")), ("link", ("FOLDER/secret.txt", "FOLDER/h")),
                        ("chmod", ("FOLDER/secret.txt", 0)), ("truncate", ("FOLDER/secret.txt", 0)), ("mkfifo", ("FOLDER/f",)),
                        ("utime", ("FOLDER/secret.txt", (1, 1))), ("rmdir", ("FOLDER",)), ("chdir", ("FOLDER",)), ("chroot", ("FOLDER",)),
                        ("setxattr", ("FOLDER/secret.txt", "user.x", b"1")), ("listxattr", ("FOLDER/secret.txt",)), ("scandir", ("FOLDER",))]:
    try:
        getattr(os, name)(*arguments)
        done.append(name)
    except OSError:
        pass
assert not done, done
result = done
# %% file6 | files | runtime | a temporary file
import tempfile
result = tempfile.NamedTemporaryFile().name
# %% file7 | files | ok | every way to open for reading
import ctypes, io, os, shutil, sqlite3, linecache
got = []
ways = [lambda: io.FileIO("FOLDER/secret.txt").read(), lambda: os.read(os.open("FOLDER/secret.txt", os.O_RDONLY), 99),
        lambda: shutil.copyfile("FOLDER/secret.txt", "/tmp/x"), lambda: sqlite3.connect("FOLDER/x.db").execute("create table t (x)"),
        lambda: linecache.getlines("FOLDER/secret.txt")[0], lambda: os.open("/proc/self/root/FOLDER/secret.txt", 0),
        lambda: os.open("/guest.py/../FOLDER/secret.txt", 0), lambda: os.listdir("/proc")[0]]
for way in ways:
    try:
        got.append(way())
    except Exception:
        pass
assert not got, got
result = got
# %% file8 | files | ok | descriptors the host may have left open
import os
seen = []
for fd in range(4, 200):  # 3 is the block's own channel
    try:
        seen.append((fd, os.readlink(f"/proc/self/fd/{fd}")))
    except OSError:
        pass
    try:
        os.fchdir(fd)
        seen.append(fd)
    except OSError:
        pass
assert not seen, seen
result = seen
# %% file9 | files | ok | writing to the interpreter's own files
import os, sys
done = []
for path in (os.__file__, sys.executable, "/guest.py", "/dev/shm/x", "/tmp/x"):
    for mode in ("w", "a", "r+b"):
        try:
            open(path, mode)
            done.append(path)
        except OSError:
            pass
assert not done, done
result = done
# %% env1 | environment | ok | the environment, four ways
import ctypes, os, posix, subprocess
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
found = [dict(os.environ), {k.decode(): v.decode() for k, v in posix.environ.items()}, os.getenv("HYPERTOOL_CANARY"), libc.getenv(b"HYPERTOOL_CANARY")]
print(found)
assert "HYPERTOOL_CANARY" not in str(found)
result = found[0]
# %% env2 | environment | runtime | another process's environment
result = open("/proc/PID/environ", "rb").read()
# %% env3 | environment | ok | the heap of this process holds no secret of the host
import gc
found = [o for o in gc.get_objects() if isinstance(o, dict) and "HYPERTOOL_CANARY" in o]
result = len(found)
assert not result
# %% net1 | network | runtime | TCP to the canary
import socket
s = socket.create_connection(("127.0.0.1", PORT), timeout=1)
s.sendall(b"hello")
result = 1
# %% net2 | network | runtime | UDP
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", PORT))
result = 1
# %% net3 | network | runtime | a URL
import urllib.request
result = urllib.request.urlopen("http://127.0.0.1:PORT/", timeout=1).status
# %% net4 | network | runtime | asyncio's own connections
import asyncio
reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
result = 1
# %% net5 | network | runtime | a Unix socket by its path
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("SOCKET")
s.sendall(b"hello")
result = 1
# %% net6 | network | ok | a Unix socket through a socket pair's end
import ctypes, socket
a, b = socket.socketpair()
address = b"\x01\x00" + b"SOCKET" + b"\x00"
libc = ctypes.CDLL(None, use_errno=True)
value = libc.connect(a.fileno(), address, len(address))
assert value == -1
result = value
# %% net7 | network | ok | every family of sockets
import socket
made = []
for family in range(46):
    for kind in (1, 2, 3):
        try:
            socket.socket(family, kind)
            made.append(family)
        except OSError:
            pass
assert not made, made
result = made
# %% proc1 | processes | ok,runtime | a shell, five ways
import ctypes, os, subprocess
done = []
for way in (lambda: os.system("touch FOLDER/shell"), lambda: subprocess.run(["/bin/touch", "FOLDER/shell"]).returncode,
            lambda: os.popen("touch FOLDER/shell").close() or 0, lambda: os.posix_spawn("/bin/touch", ["touch", "FOLDER/shell"], {}),
            lambda: ctypes.CDLL(None).system(b"touch FOLDER/shell")):
    try:
        done.append(way())
    except OSError:
        pass
assert 0 not in done, done
result = done
# %% proc2 | processes | runtime | fork
import os
result = os.fork()
# %% proc3 | processes | cpu_limit,crashed | a fork bomb that swallows refusals
import os
result = 0
while True:
    try:
        os.fork()
    except OSError:
        pass
# %% proc4 | processes | runtime,memory_limit,cpu_limit,crashed,wall_limit | a thread bomb
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(99,)).start()
result = 1
# %% proc5 | processes | ok | signals to others
import os, signal
sent = []
for process in (PID, 1, -1, os.getppid(), 0):
    try:
        os.kill(process, signal.SIGKILL)
        sent.append(process)
    except OSError:
        pass
    try:
        signal.pidfd_send_signal(os.pidfd_open(abs(process) or 1), signal.SIGKILL)
        sent.append(process)
    except (OSError, ValueError):
        pass
assert not sent, sent
result = sent
# %% proc6 | processes | runtime | multiprocessing
import multiprocessing
with multiprocessing.Pool(2) as pool:
    result = pool.map(len, ["a", "b"])
# %% proc7 | processes | crashed | killing itself
import os
os.abort()
result = 1
# %% proc8 | processes | crashed | leaving without an answer
import os
os._exit(0)
result = 1
# %% proc9 | processes | ok | trace, memory and priorities of others
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
done = []
for name, arguments in (("ptrace", (16, PID, 0, 0)), ("setpriority", (0, PID, 19)), ("process_vm_readv", (PID, 0, 0, 0, 0, 0)),
                        ("sched_setaffinity", (PID, 8, b"\x01" * 8)), ("setpgid", (PID, 0)), ("personality", (0x40000,))):
    if getattr(libc, name)(*arguments) != -1:
        done.append(name)
assert not done, done
result = done
# %% esc1 | escape | ok | subclasses lead to a shell that is not there
import os
found = [c for c in object.__subclasses__() if c.__name__ == "_wrap_close"]
result = found[0].__init__.__globals__["system"]("touch FOLDER/escaped")
assert result != 0
# %% esc2 | escape | ok | a walk over frames and modules
import sys
frame, names = sys._getframe(), []
while frame:
    names += [k for k in frame.f_globals if k in ("os", "socket", "subprocess")]
    frame = frame.f_back
try:
    sys.modules["os"].system("touch FOLDER/escaped")
    open("FOLDER/escaped", "w")
except OSError:
    pass
result = names
# %% esc3 | escape | crashed | a wild pointer
import ctypes
result = ctypes.string_at(1)
# %% esc4 | escape | ok,crashed,runtime | machine code
import ctypes, mmap
code = b"\x48\xc7\xc0\x3b\x00\x00\x00\x48\x31\xff\x48\x31\xf6\x48\x31\xd2\x0f\x05\xc3"  # execve(0, 0, 0)
area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
area.write(code)
result = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(area)))()
# %% esc5 | escape | ok | namespaces and mounts
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
done = [name for name, arguments in (("unshare", (0x10000000,)), ("mount", (b"x", b"/", b"tmpfs", 0, 0)), ("pivot_root", (b"/", b"/")),
        ("setns", (3, 0)), ("chroot", (b"/",)), ("setuid", (0,)), ("prctl", (22, 0, 0, 0, 0))) if getattr(libc, name, lambda *a: -1)(*arguments) != -1]
assert done in ([], ["setuid"]), done
result = done
# %% esc6 | escape | ok | bytes of code made by hand
import types
code = (lambda: 0).__code__.replace(co_consts=(None, "x"), co_names=("a",) * 3)
result = repr(code)[:5]
# %% esc7 | escape | runtime | the tools' own internals
call_tool.__globals__["os"].execv("/bin/sh", ["sh"])
result = 1
# %% leak1 | leak | ok | builtins and modules left broken
import builtins, json, math
json.loads = json.dumps = lambda *a, **k: "PATCHED"
math.pi = 3
builtins.len = builtins.sorted = lambda *a, **k: 42
result = "patched"
# %% leak2 | leak | ok | names, modules and threads left behind
import sys, threading, time, types
sys.modules["leaked"] = types.ModuleType("leaked")
threading.Thread(target=time.sleep, args=(60,), daemon=False).start()
leaked = True
result = "left"
# %% leak3 | leak | crashed,runtime,ok | hooks at exit
import atexit, sys, threading
atexit.register(lambda: open("FOLDER/exit", "w"))
sys.excepthook = threading.excepthook = None
sys.settrace(lambda *a: None)
result = 1
# %% proto1 | protocol | crashed,message_too_large | rubbish in every descriptor
import os
for fd in range(3, 64):
    try:
        os.write(fd, b"\x00\x00\x00\x02{}")
    except OSError:
        pass
result = 1
# %% proto2 | protocol | crashed,message_too_large | a frame that claims to be huge
import os
os.write(3, b"\xff\xff\xff\xff")
result = 1
# %% proto3 | protocol | ok,crashed | a forged answer is an answer of this block only
import json, os, struct
data = json.dumps({"op": "done", "result": "forged"}).encode()
os.write(3, struct.pack(">I", len(data)) + data)
result = "real"
# %% proto4 | protocol | wall_limit,crashed | its channel closed
import os, time
os.close(3)
time.sleep(60)
result = 1
# %% proto5 | protocol | crashed | a call without an id
import json, os, struct
data = json.dumps({"op": "call", "server": "shop", "tool": "convert", "params": {}}).encode()
os.write(3, struct.pack(">I", len(data)) + data)
result = 1
# %% size1 | size | result_too_large,memory_limit | a huge text
result = "x" * 10**8
# %% size2 | size | result_too_large | many values
result = list(range(10**6))
# %% size3 | size | ok | much printed
for _ in range(200):
    print("x" * 10**6)
result = 1
# %% size4 | size | tool | a flood from a tool
result = call_tool("misc", "flood", {"megabytes": 16})
# %% size5 | size | message_too_large,tool | huge arguments
result = call_tool("misc", "scalar", {"form": "x" * (9 * 2**20)})
# %% size6 | size | result_type | an endless iterator
import itertools
result = itertools.count()
# %% size7 | size | cpu_limit,result_too_large,memory_limit,crashed | a generator without an end
result = (n for n in iter(int, 1))
# %% val1 | values | ok | NaN, infinities, sets, dates
import datetime
result = [float("nan"), -float("inf"), {2, 1}, datetime.date(2024, 2, 29), {(1, 2): b"\xff"}]
# %% val2 | values | ok | lone surrogates and control characters
result = ["\ud800", "\x1b[31mred\x1b[0m", "\x00"]
# %% val3 | values | result_type | a function
result = {"f": call_tool}
# %% val4 | values | runtime,result_type,ok | a value that lies about itself
class Liar(dict):
    def items(self):
        raise KeyboardInterrupt
    def __len__(self):
        return -1
result = Liar(a=1)
# %% val5 | values | ok,result_type,runtime | a value whose class misbehaves
class Odd(str):
    def encode(self, *a):
        return b"\xff" * 10
    def __str__(self):
        raise SystemExit
result = [Odd("x")]
# %% tool1 | tools | tool | an unknown server
result = call_tool("shp", "convert", {"amount": 1, "currency": "EUR"})
# %% tool2 | tools | tool | an unknown tool
result = call_tool("shop", "conver", {"amount": 1, "currency": "EUR"})
# %% tool3 | tools | tool | a missing argument
result = call_tool("shop", "convert", {"amount": 1})
# %% tool4 | tools | tool | a wrong type
result = call_tool("shop", "convert", {"amount": "much", "currency": "EUR"})
# %% tool5 | tools | runtime | not a dict
result = call_tool("shop", "convert", [1, "EUR"])
# %% tool6 | tools | call_limit | calls without an end
while True:
    call_tool("misc", "scalar", {"form": "x"})
result = 1
# %% tool7 | tools | tool | the block tool itself
result = call_tool("hypertool", "hypertool", {"code": "result = 1"})
# %% tool8 | tools | tool | a tool that hangs
result = call_tool("misc", "pause", {"seconds": 30})
# %% tool9 | tools | wall_limit,call_limit,tool | hanging calls in parallel
result = call_tools([("misc", "pause", {"seconds": 3})] * 40)
# %% syn1 | syntax | syntax | no Python
result = = 1
# %% syn2 | syntax | no_result | no result
x = 1
# %% syn3 | syntax | no_result | the result in a function only
def main():
    result = 1
main()
# %% exit1 | exits | runtime | sys.exit
import sys
sys.exit(0)
result = 1
# %% exit2 | exits | runtime | KeyboardInterrupt
raise KeyboardInterrupt
result = 1
# %% exit3 | exits | runtime | an exception without a text
class Mute(Exception):
    def __str__(self):
        raise RuntimeError
raise Mute
result = 1
