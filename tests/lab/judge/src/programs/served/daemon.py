# Becomes a daemon, which fetches a URL into a file and says when it is done: it forks, begins a
# session, and forks again, so that it is nobody's child.
import os
import sys
import urllib.request

url, path = sys.argv[1:]
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    os._exit(0)
urllib.request.urlretrieve(url, path + ".part")
os.rename(path + ".part", path)
