#!/bin/sh
# sbom.sh NAME VERSION PACKAGE…: the parts of an image as SPDX 2.3 JSON: Debian packages with the versions installed here.
#
# No date of its own and no random identifier: the same packages give the same bytes (SOURCE_DATE_EPOCH, else 1970).
set -eu
export LC_ALL=C
name=$1 version=$2
shift 2
created=$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)
. /etc/os-release
rows=$(dpkg-query -W -f='${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Homepage}\n' "$@" |
    sort -u)
digest=$(printf '%s %s\n%s\n' "$name" "$version" "$rows" | sha256sum | cut -c 1-40)
printf '%s\n' "$rows" | awk -F '\t' -v name="$name" -v version="$version" -v created="$created" -v digest="$digest" \
    -v distro="${VERSION_CODENAME:-$ID}" '
    # By source package, as the file copyright of each says.
    function licence(source) {
        if (!known) {
            known = 1
            split("jansson MIT|libmicrohttpd LGPL-2.1-or-later|openblas BSD-3-Clause|zlib Zlib|libpng1.6 libpng-2.0|utf8proc MIT|" \
                "pcre2 BSD-3-Clause|nettle LGPL-3.0-or-later OR GPL-2.0-or-later|gmp LGPL-3.0-or-later OR GPL-2.0-or-later|" \
                "libzstd BSD-3-Clause OR GPL-2.0-only|freetype FTL OR GPL-2.0-or-later|glibc LGPL-2.1-or-later|brotli MIT|" \
                "gnutls28 LGPL-2.1-or-later|p11-kit BSD-3-Clause|libtasn1-6 LGPL-2.1-or-later|libffi MIT|bzip2 bzip2-1.0.6|" \
                "libidn2 LGPL-3.0-or-later OR GPL-2.0-or-later|libunistring LGPL-3.0-or-later OR GPL-2.0-or-later|" \
                "fonts-dejavu Bitstream-Vera|fonts-wqy-microhei Apache-2.0 OR GPL-3.0-or-later WITH Font-exception-2.0", rows, "|")
            for (i in rows)
                named[substr(rows[i], 1, index(rows[i], " ") - 1)] = substr(rows[i], index(rows[i], " ") + 1)
        }
        if (source ~ /^gcc-[0-9]+/)
            return "GPL-3.0-or-later WITH GCC-exception-3.1"
        return source in named ? named[source] : "NOASSERTION"
    }
    function id(text) { gsub(/[^A-Za-z0-9.-]/, "-", text); return text }
    function url(text) { gsub(/\+/, "%2B", text); gsub(/:/, "%3A", text); gsub(/~/, "%7E", text); return text }
    BEGIN {
        printf "{\"spdxVersion\":\"SPDX-2.3\",\"dataLicense\":\"CC0-1.0\",\"SPDXID\":\"SPDXRef-DOCUMENT\",\n"
        printf "\"name\":\"%s-%s\",\"documentNamespace\":\"urn:attnd:sbom:%s\",\n", name, version, digest
        printf "\"creationInfo\":{\"created\":\"%s\",\"creators\":[\"Tool: sbom.sh\"]},\n", created
        printf "\"packages\":[\n{\"SPDXID\":\"SPDXRef-%s\",\"name\":\"%s\",\"versionInfo\":\"%s\",", id(name), name, version
        printf "\"downloadLocation\":\"NOASSERTION\",\"filesAnalyzed\":false,\"licenseConcluded\":\"Apache-2.0\","
        printf "\"licenseDeclared\":\"Apache-2.0\",\"copyrightText\":\"NOASSERTION\"}"
    }
    {
        part = "SPDXRef-" id($1 "-" $3)
        related = related sprintf(",\n{\"spdxElementId\":\"SPDXRef-%s\",\"relationshipType\":\"CONTAINS\"," \
            "\"relatedSpdxElement\":\"%s\"}", id(name), part)
        printf ",\n{\"SPDXID\":\"%s\",\"name\":\"%s\",\"versionInfo\":\"%s\",", part, $1, $2
        printf "\"supplier\":\"Organization: Debian\",\"downloadLocation\":\"NOASSERTION\",\"filesAnalyzed\":false,"
        printf "\"licenseConcluded\":\"NOASSERTION\",\"licenseDeclared\":\"%s\",\"copyrightText\":\"NOASSERTION\",", licence($4)
        if ($6 != "") printf "\"homepage\":\"%s\",", $6
        printf "\"sourceInfo\":\"built from source package: %s %s\",\"externalRefs\":[{\"referenceCategory\":" \
            "\"PACKAGE-MANAGER\",\"referenceType\":\"purl\",\"referenceLocator\":\"pkg:deb/debian/%s@%s?arch=%s&distro=%s\"}]}", \
            $4, $5, url($1), url($2), $3, distro
    }
    END {
        printf "],\n\"relationships\":[\n{\"spdxElementId\":\"SPDXRef-DOCUMENT\",\"relationshipType\":\"DESCRIBES\","
        printf "\"relatedSpdxElement\":\"SPDXRef-%s\"}%s]}\n", id(name), related
    }'
