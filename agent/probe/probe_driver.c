/* Probe driver: what the drivers of all libraries need, and the search in their table. */
#include "agent/probe/probe_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void probe_driver_pci_format(unsigned domain, unsigned bus, unsigned device, unsigned function, char ret[20])
{
        (void) text_format(ret, 20, "%04x:%02x:%02x.%x", domain & 0xffffu, bus & 0xffu, device & 0x1fu,
                           function & 7u);
}

void probe_driver_pci_parse(const char *bus_id, char ret[20])
{
        unsigned domain, bus, device, function = 0;

        ret[0] = '\0';
        /* NOLINTNEXTLINE(cert-err34-c): four figures of at most 8 hexadecimal digits cannot overflow */
        if (sscanf(bus_id, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) >= 3) /* a library's own */
                probe_driver_pci_format(domain, bus, device, function, ret);
}

bool probe_driver_symbol(void *library, const char *name, void *into)
{
        void *function = dlsym(library, name);

        memcpy(into, &function, sizeof(function));
        return function != NULL;
}

const struct probe_driver *probe_driver_find(const char *vendor)
{
        for (const struct probe_driver *d = probe_drivers; d->vendor != NULL; d++)
                if (strcmp(d->vendor, vendor) == 0)
                        return d;
        return NULL;
}

/* Return: the first function that must be there and is not; NULL = none. */
static const char *load(void *library, const struct probe_driver_function *functions, char *state)
{
        for (const struct probe_driver_function *f = functions; f->name != NULL; f++) {
                void *there;

                memcpy(&there, state + f->offset, sizeof(there));
                if (there == NULL && !probe_driver_symbol(library, f->name, state + f->offset) && f->required)
                        return f->name;
        }
        return NULL;
}

int probe_driver_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err)
{
        const struct probe_driver_calls *calls = driver->calls;
        const char *missing;
        void *state;
        int r;

        if (calls->open != NULL)
                return calls->open(driver, library, ret_state, err);
        state = calloc(1, calls->state_bytes);
        if (state == NULL)
                return err_set(err, -ENOMEM, "no memory");
        missing = load(library, calls->functions, state);
        r = missing == NULL ? calls->start(state) : 0;
        if (missing == NULL && r == 0) {
                *ret_state = state;
                return 0;
        }
        free(state);
        return missing != NULL ? err_set(err, -ENOENT, "the library has no %s", missing)
                               : err_set(err, -EIO, "%s says %d", calls->functions[0].name, r);
}
