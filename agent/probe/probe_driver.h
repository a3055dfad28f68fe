/* Probe driver: how the child asks one vendor's library. A row a vendor; the functions run in the child alone
 * and may hang or crash: the agent outlives that.
 *
 * A driver finds what it needs by dlsym() and asks; what a library does not offer is left out. */
#pragma once

#include "agent/inventory/link_report.h"
#include "agent/probe/probe_sample.h"
#include "base/err.h"

#define PROBE_SONAMES_MAX 6

typedef void (*probe_driver_take)(void *userdata, const struct probe_sample *sample);
typedef void (*probe_driver_take_links)(void *userdata, const struct link_report *report);

struct probe_driver;

/* A function of a library; a name that fills a place which is filled already is passed over. NULL ends the
 * table. */
struct probe_driver_function {
        const char *name;
        size_t offset; /* of its pointer in the state */
        bool required;
};

/* How a family of libraries is asked: a file of drivers/. Those marked in drivers/table.c were written from
 * the vendors' headers and not tried on their hardware: a figure outside its bounds is refused by the agent.
 */
struct probe_driver_calls {
        /* The state of most: pointers to these functions of the library, of which the first is called by
         * start() and makes it ready. Return of start: the library's own word, 0 = ready. */
        const struct probe_driver_function *functions;
        size_t state_bytes;
        int (*start)(void *state);
        /* Instead of that, for a library with other needs. 0; -ENOENT: not the library it is taken for; -EIO:
         * it refuses. *ret_state is whatever sample() wants; it lives as long as the child. */
        int (*open)(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
        /* Calls take() for every device. 0, or negative when nothing could be asked. */
        int (*sample)(void *state, probe_driver_take take, void *userdata, struct err *err);
        /* Calls take() for every device whose links could be asked, also when it has none; NULL = the library
         * tells of no links. 0, or negative when nothing could be asked. */
        int (*links)(void *state, probe_driver_take_links take, void *userdata, struct err *err);
};

struct probe_driver {
        const char *vendor;  /* rows of one vendor stand together; the first that opens is asked */
        const char *library; /* what the vendor calls it: "NVML" */
        const char *sonames[PROBE_SONAMES_MAX]; /* tried in this order; NULL ends */
        const char *prefix;                     /* of its functions, where a family shares a driver */
        bool links;                             /* this library is asked for links, if its family can be */
        const struct probe_driver_calls *calls;
};

/* probe_driver_open() - by the driver's functions, or by its own open(). Return: as open(). */
int probe_driver_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);

extern const struct probe_driver probe_drivers[]; /* ends with vendor == NULL */

/* probe_driver_find() - the vendor's first row; NULL for a vendor whose library is not asked. */
const struct probe_driver *probe_driver_find(const char *vendor);

/* probe_driver_symbol() - a function of the library into a function pointer: `into` is its address. ISO C has
 * no conversion from void * to a function; POSIX promises that the bytes are the same. Return: is it there?
 */
bool probe_driver_symbol(void *library, const char *name, void *into);

/* probe_driver_pci_format(), probe_driver_pci_parse() - "0000:18:00.0" of numbers, or of a library's own
 * spelling
 * ("00000000:18:00.0"); "" when that is none. */
void probe_driver_pci_format(unsigned domain, unsigned bus, unsigned device, unsigned function, char ret[20]);
void probe_driver_pci_parse(const char *bus_id, char ret[20]);
