/* Rows: the list of vendors. Alone in its file, so that a test may bring a list of its own. */
#include "agent/vendor/rows.h"

#define POINTER(name) &vendor_##name,

const struct vendor *const vendors[] = { ROWS(POINTER) NULL };
