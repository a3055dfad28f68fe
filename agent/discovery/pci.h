/* PCI: the functions of a tree, their place below the host bridges, and what sysfs says of their state.
 * Private to agent/discovery. */
#pragma once

#include "agent/inventory/device.h"
#include "agent/tree/tree.h"

#define PCI_FUNCTIONS_MAX 4096
#define PCI_ADDRESS_BYTES 20
#define PCI_BRIDGES_BYTES 192 /* host bridge, root port and eight more */

struct pci_function {
        char address[PCI_ADDRESS_BYTES]; /* "0000:18:00.0" */
        uint64_t order;                  /* sorts like the address */
        uint16_t vendor, device;
        uint32_t class_code; /* 24 bits: 0x120000 */
        bool claimed;        /* a vendor row counted it */
        uint32_t path;       /* offset of its directory in pci->paths */
};

struct pci {
        struct pci_function *functions; /* sorted by address */
        size_t count, capacity;
        struct text paths;
};

/* What is read of a function once a vendor row is interested in it. */
struct pci_state {
        char driver[48];                 /* "" = none bound */
        char bridges[PCI_BRIDGES_BYTES]; /* "pci0000:17/0000:17:00.0/0000:18:00.0": host bridge, root port,
                                            and every port of a switch on the way; "" = not known */
        int numa;                        /* after the fall-backs; 0 when nothing is known */
        bool lost;                       /* configuration space reads all ones */
        bool has_width;
        unsigned width, promised_width; /* lanes; what function and slot can do together */
};

/* pci_scan() - Return: 0, also when there is no PCI; -E2BIG past PCI_FUNCTIONS_MAX; -ENOMEM,
 * -EMFILE, -ENFILE, -EAGAIN: not all could be looked at, and nothing is said. */
int pci_scan(const struct tree *tree, struct pci *ret);
void pci_free(struct pci *pci);

const char *pci_path(const struct pci *pci, const struct pci_function *function); /* its directory */
struct pci_function *pci_find(const struct pci *pci, const char *address);        /* or NULL */

/* pci_parse_address() - "0000:18:00.0" (domains of up to 8 digits, either case) to its order.
 * Return: 0 or -EINVAL. */
int pci_parse_address(const char *text, uint64_t *ret_order);
void pci_format_address(uint64_t order, char *ret, size_t ret_bytes);
/* pci_order() - from the parts, as KFD and DCMI give them. */
uint64_t pci_order(uint32_t domain, unsigned bus, unsigned device, unsigned function);

/* pci_physical() - the physical function of a virtual one; "" when it is none. */
void pci_physical(const struct tree *tree, const struct pci *pci, const struct pci_function *function,
                  char *ret, size_t ret_bytes);

void pci_read_state(const struct tree *tree, const struct pci *pci, const struct pci_function *function,
                    struct pci_state *ret);

/* pci_root_port() - host bridge and root port of such a way: "pci0000:17/0000:17:00.0". Return: its length, 0
 * when nothing lies between the root port and the function. */
size_t pci_root_port(const char *bridges);

/* pci_common_switch() - the last port that two ways share below their root port: the upstream port of the
 * nearest PCIe switch that both functions hang on. Return: the length of the way up to it; 0 = none. */
size_t pci_common_switch(const char *bridges, const char *other);

/* pci_address_of() - the PCI function that a class device belongs to ("sys/class/drm/card0/device").
 * Return: false when it belongs to none. */
bool pci_address_of(const struct tree *tree, const char *path, char *ret, size_t ret_bytes);
