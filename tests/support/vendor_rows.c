/* The list of vendors of the test build: the house's, and one that does not exist. */
#include "agent/vendor/rows.h"

extern const struct vendor vendor_acme;

#define POINTER(name) &vendor_##name,

const struct vendor *const vendors[] = { POINTER(acme) ROWS(POINTER) NULL };
