/* Machine text: small machines for tests, written line by line and discovered. */
#pragma once

#include "agent/discovery/discovery_options.h"
#include "agent/inventory/inventory.h"
#include "base/text.h"

/* machine_begin() - the head; machine_line() - a line of the machine file. */
void machine_begin(struct text *machine);
void machine_line(struct text *machine, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One PCI function. NULL or zero members are left out of the tree. */
struct machine_function {
        const char *address; /* "0000:11:00.0" */
        const char *below; /* bridges between host bridge and it: "0000:10:01.0/0000:11:00.0"; NULL = none */
        unsigned vendor, device, class_code;
        const char *driver; /* NULL = none bound */
        int numa;
        bool lost; /* configuration space all ones */
        unsigned width, max_width;
        const char *extra; /* further lines; '@' stands for its directory */
};

void machine_function(struct text *machine, const struct machine_function *function);

/* machine_discover() - fails the test when the machine cannot be read or discovered. @options may be NULL. */
void machine_discover(const struct text *machine, const struct discovery_options *options,
                      struct inventory *ret);

/* machine_count() - devices of a vendor; NULL = of all but CPU groups. */
unsigned machine_count(const struct inventory *inventory, const char *vendor);
/* machine_first() - the first device of a vendor; fails the test when there is none. */
const struct device *machine_first(const struct inventory *inventory, const char *vendor);
