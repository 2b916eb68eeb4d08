# Modules of 500 kB for go, as a module proxy that a web server has (GOPROXY protocol).
import json
import os
import zipfile

MODULES = [f"example.org/module{number}" for number in range(80)]

for module in MODULES:
    versions = f"web/go/{module}/@v"
    os.makedirs(versions)
    about = f"module {module}\n\ngo 1.20\n"
    with open(f"{versions}/list", "w") as file:
        file.write("v1.0.0\n")
    with open(f"{versions}/v1.0.0.info", "w") as file:
        json.dump({"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}, file)
    with open(f"{versions}/v1.0.0.mod", "w") as file:
        file.write(about)
    with zipfile.ZipFile(f"{versions}/v1.0.0.zip", "w") as archive:
        archive.writestr(f"{module}@v1.0.0/go.mod", about)
        archive.writestr(f"{module}@v1.0.0/module.go", "package module\n")
        archive.writestr(f"{module}@v1.0.0/data.bin", os.urandom(500_000))
with open("go.mod", "w") as file:
    file.write("module example.org/site\n\ngo 1.20\n\n")
    file.writelines(f"require {module} v1.0.0\n" for module in MODULES)
