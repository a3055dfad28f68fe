/* Version of all programs; the Makefile adds the revision. The release is read by tools/version, too. */
#pragma once

#define REMUDA_RELEASE "0.1.0"

#ifdef REMUDA_REVISION
#define REMUDA_VERSION REMUDA_RELEASE " (" REMUDA_REVISION ")"
#else
#define REMUDA_VERSION REMUDA_RELEASE
#endif
