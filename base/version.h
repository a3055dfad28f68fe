/* Version of all programs; the Makefile adds the revision. */
#pragma once

#ifndef REMUDA_VERSION
#define REMUDA_VERSION "0.1.0"
#endif
