/* DRA version: a driver's version as an attribute has to have it: strict semver, or the whole slice is
 * refused. Pure. */
#pragma once

#define DRA_VERSION_BYTES   65
#define DRA_VERSION_UNKNOWN "0.0.0"

/* dra_version_of() - its first three numbers without leading zeros, 0 for those it has not: "550.54.15"
 * stays, "5.15" is 5.15.0, "v1.2" 1.2.0, "590.48.01-open" 590.48.1; DRA_VERSION_UNKNOWN for what begins with
 * no number. */
void dra_version_of(const char *version, char ret[DRA_VERSION_BYTES]);
