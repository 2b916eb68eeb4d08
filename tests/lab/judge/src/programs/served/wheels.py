# Packages of 1 MB each for pip, as a simple index (PEP 503) that a web server has.
import os
import zipfile

os.makedirs("wheels")
names = [f"package{number}" for number in range(40)]
for name in names:
    wheel = f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"wheels/{wheel}", "w") as archive:
        about = f"{name}-1.0.dist-info"
        archive.writestr(f"{name}/data", os.urandom(1_000_000))
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    page = f"web/simple/{name}"
    os.makedirs(page)
    os.link(f"wheels/{wheel}", f"{page}/{wheel}")
    with open(f"{page}/index.html", "w") as index:
        index.write(f'<!DOCTYPE html><html><body><a href="{wheel}">{wheel}</a></body></html>\n')
with open("requirements.txt", "w") as requirements:
    requirements.writelines(f"{name}==1.0\n" for name in names)
