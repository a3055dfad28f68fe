/* Sighting: one function, or another thing that a vendor's row counts, on its way to being a device. What the
 * row's data say is filled in here; what must be read beyond them is a reader's (reader.h), with the helpers
 * below. */
#pragma once

#include "agent/discovery/pci.h"
#include "agent/discovery/scan.h"
#include "agent/vendor/vendor.h"

struct sighting {
        const struct vendor *vendor;
        struct pci_function *function; /* NULL = none */
        struct pci_state state;
        const char *kind;      /* of the model; "" = none */
        unsigned number, rank; /* N as in the row; how many of the row came before */
        bool number_known;     /* from a class */
        struct device device;
        struct scan_placement placement;
};

/* sighting_begin() - of something that is no PCI function; healthy until judged. */
void sighting_begin(const struct vendor *vendor, struct sighting *ret);

/* sighting_begin_function() - of a PCI function, with what sysfs says of its state.
 * @rank: how many of the row came before */
void sighting_begin_function(const struct scan *scan, const struct vendor *vendor,
                             struct pci_function *function, unsigned rank, struct sighting *ret);

/* sighting_add() - a device it is, with the nodes and the fabric of its row as far as none were set. Return:
 * as scan_add(). */
int sighting_add(struct scan *scan, struct sighting *sighting);

/* sighting_is_passed_through() - does its driver hand it to a virtual machine? */
bool sighting_is_passed_through(const struct sighting *sighting);

/* sighting_assign() - if its driver hands it to a virtual machine: reported to people, and in no group.
 * Return: does it? */
bool sighting_assign(struct sighting *sighting);

/* sighting_judge() - worsen the verdict; one that is not worse than what stands is dropped. */
void sighting_judge(struct sighting *sighting, enum device_health health, const char *reason,
                    const char *rule, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* sighting_judge_state() - by what sysfs says of the function: fallen off, link down, no driver or a wrong
 * one. */
void sighting_judge_state(struct sighting *sighting);

/* sighting_set_model() - by PCI ids, from the operator's models, the row's, or the ids themselves. */
void sighting_set_model(const struct scan *scan, struct sighting *sighting, uint16_t pci_vendor,
                        uint16_t pci_device);
/* sighting_set_model_name() - by name; memory and speeds follow from the speeds table. */
void sighting_set_model_name(struct sighting *sighting, const char *name);

/* sighting_set_number() - N is now known: node and index follow. */
void sighting_set_number(struct sighting *sighting, unsigned number);

/* sighting_add_node() - a device node. Where the tree has dev/ and lacks it: a required one makes the device
 * unhealthy (NodeMissing), another is left out. */
void sighting_add_node(const struct scan *scan, struct sighting *sighting, bool required, const char *fmt,
                       ...) __attribute__((format(printf, 4, 5)));

/* sighting_read() - a text attribute of its PCI function. Return: its length; <= 0 = nothing there. */
ssize_t sighting_read(const struct scan *scan, const struct sighting *sighting, const char *name, char *text,
                      size_t text_bytes);

/* sighting_set_serial() - identity from a hardware serial, "nec-2BJ2300049"; ignored unless it says something
 * (not blank, not all zeros or all Fs). Only letters, digits, '-', '_', '.' stay. */
void sighting_set_serial(struct sighting *sighting, const char *serial);

/* sighting_find_model() - what the operator calls a function of this vendor; NULL = nothing. */
const struct discovery_options_model *sighting_find_model(const struct scan *scan,
                                                          const struct vendor *vendor, uint16_t pci_vendor,
                                                          uint16_t pci_device);
