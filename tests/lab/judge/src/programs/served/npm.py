# Packages of 650 kB for npm, as a registry that a web server has: for each a packument
# (registry API of npm) and a tarball.
import base64
import hashlib
import io
import json
import os
import tarfile

NAMES = [f"package-{number}" for number in range(60)]
REGISTRY = "http://mirror.example.org/npm"


def add(archive, name, content):
    entry = tarfile.TarInfo(f"package/{name}")
    entry.size = len(content)
    entry.mode = 0o644
    archive.addfile(entry, io.BytesIO(content))


for name in NAMES:
    os.makedirs(f"web/npm/{name}/-")
    about = {"name": name, "version": "1.0.0", "main": "index.js", "license": "MIT"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        add(archive, "package.json", json.dumps(about).encode())
        add(archive, "index.js", b"module.exports = 1\n")
        add(archive, "data", os.urandom(650_000))
    content = packed.getvalue()
    tarball = f"-/{name}-1.0.0.tgz"
    with open(f"web/npm/{name}/{tarball}", "wb") as file:
        file.write(content)
    about["dist"] = {
        "tarball": f"{REGISTRY}/{name}/{tarball}",
        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode(),
        "shasum": hashlib.sha1(content).hexdigest(),
    }
    packument = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": about}}
    with open(f"web/npm/{name}/index.json", "w") as file:
        json.dump(packument, file)
wants = {name: "1.0.0" for name in NAMES}
with open("package.json", "w") as file:
    json.dump({"name": "site", "version": "1.0.0", "dependencies": wants}, file)
