/* Driver: how the child asks one vendor's library. A row a vendor; the functions run in the child alone and
 * may hang or crash: the agent outlives that.
 *
 * A driver finds what it needs by dlsym() and asks; what a library does not offer is left out. */
#pragma once

#include "agent/inventory/link_report.h"
#include "agent/probe/probe_sample.h"
#include "base/err.h"

#define PROBE_SONAMES_MAX 6

struct probe_driver {
        const char *vendor;  /* rows of one vendor stand together; the first that opens is asked */
        const char *library; /* what the vendor calls it: "NVML" */
        const char *sonames[PROBE_SONAMES_MAX]; /* tried in this order; NULL ends */
        const char *prefix;                     /* of its functions, where a family shares a driver */
        /* Makes the library ready. 0; -ENOENT: not the library it is taken for; -EIO: it refuses.
         * *ret_state is whatever sample() wants; it lives as long as the child. */
        int (*open)(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
        /* Calls take() for every device. 0, or negative when nothing could be asked. */
        int (*sample)(void *state, void (*take)(void *userdata, const struct probe_sample *sample),
                      void *userdata, struct err *err);
        /* Calls take() for every device whose links could be asked, also when it has none; NULL = the library
         * tells of no links. 0, or negative when nothing could be asked. */
        int (*links)(void *state, void (*take)(void *userdata, const struct link_report *report),
                     void *userdata, struct err *err);
};

extern const struct probe_driver probe_drivers[]; /* ends with vendor == NULL */

/* probe_driver_find() - the vendor's first row; NULL for a vendor whose library is not asked. */
const struct probe_driver *probe_driver_find(const char *vendor);

typedef void (*probe_take)(void *userdata, const struct probe_sample *sample);
typedef void (*probe_take_links)(void *userdata, const struct link_report *report);

/* One file a family of libraries. Those marked in driver_table.c were written from the vendors' headers and
 * not tried on their hardware: a figure outside its bounds is refused by the agent. */
int amd_smi_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
int amd_smi_sample(void *state, probe_take take, void *userdata, struct err *err);
int cndev_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
int cndev_sample(void *state, probe_take take, void *userdata, struct err *err);
int dcmi_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
int dcmi_sample(void *state, probe_take take, void *userdata, struct err *err);
int efml_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
int efml_sample(void *state, probe_take take, void *userdata, struct err *err);
int hlml_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
int hlml_sample(void *state, probe_take take, void *userdata, struct err *err);
int mtml_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
int mtml_sample(void *state, probe_take take, void *userdata, struct err *err);
int mxsml_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
int mxsml_sample(void *state, probe_take take, void *userdata, struct err *err);
int rocm_smi_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
int rocm_smi_sample(void *state, probe_take take, void *userdata, struct err *err);
int nvml_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err);
int nvml_sample(void *state, probe_take take, void *userdata, struct err *err);
int nvml_links(void *state, probe_take_links take, void *userdata, struct err *err);

/* probe_symbol() - a function of the library into a function pointer: `into` is its address. ISO C has no
 * conversion from void * to a function; POSIX promises that the bytes are the same. Return: is it there? */
bool probe_symbol(void *library, const char *name, void *into);

/* probe_child() - the child's whole life: argv[2] is the vendor, argv[3] a library's path or "". Reads a byte
 * from descriptor 0 for each question, answers on descriptor 1: a line a device, then "end", or "error why".
 * Return: exit code. */
#define PROBE_ASK_SAMPLES    '\n' /* answered with lines of agent/probe/probe_sample.h */
#define PROBE_ASK_LINKS      'l'  /* answered with lines of agent/inventory/link_report_line.h */
#define PROBE_CHILD_ARGUMENT "--probe-child"
#define PROBE_EXIT_ABSENT    3 /* there is no library */
#define PROBE_EXIT_REFUSED   4 /* there is one, and it does not work */
int probe_child(int argc, char **argv);

/* probe_pci_format(), probe_pci_parse() - "0000:18:00.0" of numbers, or of a library's own spelling
 * ("00000000:18:00.0"); "" when that is none. */
void probe_pci_format(unsigned domain, unsigned bus, unsigned device, unsigned function, char ret[20]);
void probe_pci_parse(const char *bus_id, char ret[20]);
