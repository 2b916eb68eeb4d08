# Debian packages of 1 MB, in a repository that a web server has, with an index that is as large
# as that of a small release.
mkdir -p web/apt archives
for number in $(seq 40); do
    mkdir -p tree/DEBIAN tree/usr/share/tool$number
    head -c 1000000 /dev/urandom >tree/usr/share/tool$number/data
    cat >tree/DEBIAN/control <<CONTROL
Package: tool$number
Version: 1.0
Architecture: all
Maintainer: Lab <lab@example.org>
Description: the tool $number
CONTROL
    dpkg-deb --root-owner-group -Znone -b tree web/apt/tool${number}_1.0_all.deb >listed
    rm -r tree
done
cp web/apt/*.deb archives
cd web/apt
apt-ftparchive packages . >Packages
python3 - >>Packages <<'MORE'
import base64
import os

for number in range(100_000):
    words = base64.b64encode(os.urandom(300)).decode()
    print(f"\nPackage: other{number}\nVersion: 1.0\nArchitecture: all\nFilename: ./other{number}.deb")
    print(f"Size: 1000\nSHA256: {os.urandom(32).hex()}\nDescription: {words}")
MORE
gzip -1 -k Packages
apt-ftparchive release . >Release.new
mv Release.new Release
