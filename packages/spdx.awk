# The libraries of docs/third-party.md as an SPDX 2.3 document, for programs that look at licences:
#
#   awk -v version=0.1.0 -v created=2026-11-28T00:00:00Z -f packages/spdx.awk docs/third-party.md >packages/cohort.spdx.json
#
# Columns: library, licence, CMake's name, needed by. tests/checks/third_party.sh compares the document with the page.
BEGIN { FS = " *[|] *" }

function package(id, name, version, license) {
  return sprintf("    {\n      \"name\": \"%s\",\n      \"SPDXID\": \"SPDXRef-%s\",\n%s      \"downloadLocation\": \"NOASSERTION\",\n" \
    "      \"filesAnalyzed\": false,\n      \"licenseDeclared\": \"%s\"\n    }", name, id, \
    version == "" ? "" : "      \"versionInfo\": \"" version "\",\n", license)
}

function relationship(from, kind, to) {
  return sprintf(",\n    {\"spdxElementId\": \"%s\", \"relationshipType\": \"%s\", \"relatedSpdxElement\": \"%s\"}", from, kind, to)
}

/^[|] / && NF == 6 && $2 != "library" {
  id = $2
  gsub(/[^A-Za-z0-9]+/, "-", id)
  gsub(/^-|-$/, "", id)
  packages = packages ",\n" package(id, $2, "", $3)
  if ($3 ~ /^LicenseRef-/ && !($3 in own)) {
    own[$3] = 1
    licenses = licenses (licenses == "" ? "" : ",") sprintf("\n    {\n      \"licenseId\": \"%s\",\n      \"extractedText\": " \
      "\"The licence that comes with %s; see its own distribution.\"\n    }", $3, $2)
  }
  if ($5 ~ /^everything/) links = links relationship("SPDXRef-cohort", "DEPENDS_ON", "SPDXRef-" id)
  else if ($5 ~ /^tests/) links = links relationship("SPDXRef-" id, "TEST_DEPENDENCY_OF", "SPDXRef-cohort")
  else links = links relationship("SPDXRef-" id, "OPTIONAL_DEPENDENCY_OF", "SPDXRef-cohort")
}

END {
  if (packages == "") { print "spdx.awk: no table of libraries" >"/dev/stderr"; exit 1 }
  printf "{\n  \"spdxVersion\": \"SPDX-2.3\",\n  \"dataLicense\": \"CC0-1.0\",\n  \"SPDXID\": \"SPDXRef-DOCUMENT\",\n"
  printf "  \"name\": \"cohort-%s\",\n  \"documentNamespace\": \"https://spdx.org/spdxdocs/cohort-%s\",\n", version, version
  printf "  \"creationInfo\": {\"created\": \"%s\", \"creators\": [\"Organization: The Cohort authors\"]},\n", created
  printf "  \"packages\": [\n%s%s\n  ],\n", package("cohort", "Cohort", version, "Apache-2.0"), packages
  printf "  \"hasExtractedLicensingInfos\": [%s\n  ],\n  \"relationships\": [\n", licenses
  printf "    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-cohort\"}"
  printf "%s\n  ]\n}\n", links
}
