/* Probe driver: what the drivers of all libraries need, and the search in their table. */
#include "agent/probe/probe_driver.h"

#include <dlfcn.h>
#include <stdio.h>
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
