/* remuda doctor: the devices of the machine, as a fresh look finds them. */
#include <string.h>

#include "base/text.h"
#include "cli/doctor.h"

static void check_sysfs(const struct doctor_patient *p, struct doctor_finding *f)
{
        if (!tree_has(p->tree, "sys"))
                doctor_found(f, DOCTOR_FAIL, "mount sysfs, or give a --root that has sys/", "%s has no sys/",
                             tree_root(p->tree));
        else if (!tree_has(p->tree, "sys/bus/pci/devices"))
                doctor_found(f, DOCTOR_WARN, "accelerators without PCI are found by their class alone",
                             "there is no PCI bus");
        else
                doctor_found(f, DOCTOR_PASS, "", "sysfs and its PCI bus can be read");
}

static void check_accelerators(const struct doctor_patient *p, struct doctor_finding *f)
{
        size_t accelerators = 0;

        for (size_t i = 0; i < p->inventory->device_count; i++)
                accelerators += strcmp(p->inventory->devices[i].vendor, "cpu") != 0;
        if (accelerators == 0)
                doctor_found(f, DOCTOR_PASS, "", "no accelerators; CPU groups: %zu",
                             p->inventory->group_count);
        else
                doctor_found(f, DOCTOR_PASS, "", "%zu accelerators, %zu groups", accelerators,
                             p->inventory->group_count);
}

/* Every device that has a trouble of these words, with what to do. */
static void check_reasons(const struct doctor_patient *p, struct doctor_finding *f, const char *const *words,
                          enum doctor_verdict verdict, const char *remedy, const char *well)
{
        unsigned n = 0;

        for (size_t i = 0; i < p->inventory->device_count; i++) {
                const struct device *d = &p->inventory->devices[i];

                for (const char *const *w = words; *w != NULL; w++)
                        if (strstr(d->reason, *w) != NULL) {
                                if (n++ == 0)
                                        doctor_found(f, verdict, remedy, "%s (%s): %s", d->id, d->pci,
                                                     d->message[0] != '\0' ? d->message : d->reason);
                                break;
                        }
        }
        if (n == 0)
                doctor_found(f, DOCTOR_PASS, "", "%s", well);
        else if (n > 1)
                (void) text_format(f->sentence + strlen(f->sentence),
                                   sizeof(f->sentence) - strlen(f->sentence), " (and %u more)", n - 1);
}

static void check_drivers(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const char *const words[] = { "Driver", "Unbound", NULL };

        check_reasons(p, f, words, DOCTOR_FAIL,
                      "load the vendor's driver (modprobe), and look at dmesg for why it does not bind",
                      "every accelerator has its driver");
}

static void check_files(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const char *const words[] = { "Node", "DeviceFile", NULL };

        check_reasons(p, f, words, DOCTOR_FAIL,
                      "make the device files (udev, nvidia-modprobe, the vendor's start script)",
                      "every accelerator has its device files");
}

static void check_answers(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const char *const words[] = { "Bus", "Gone", "NotAnswering", "Dead", "Lost", NULL };

        check_reasons(
                p, f, words, DOCTOR_FAIL,
                "reset the device; when it does not come back, power-cycle the node and reseat the card",
                "every accelerator answers on its bus");
}

static void check_assigned(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const char *const words[] = { "Assigned", NULL };

        check_reasons(p, f, words, DOCTOR_WARN,
                      "bind them to their vendor's driver if virtual machines do not use them",
                      "no accelerator is given to virtual machines");
}

static void check_identity(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const char *const words[] = { "Duplicate", NULL };

        check_reasons(p, f, words, DOCTOR_FAIL,
                      "two devices say that they are the same: flash their serials, or "
                      "ask the vendor; both are kept out until then",
                      "every device has an id of its own");
}

static void check_unknown(const struct doctor_patient *p, struct doctor_finding *f)
{
        for (size_t i = 0; i < p->inventory->device_count; i++)
                if (strcmp(p->inventory->devices[i].vendor, "unknown") == 0) {
                        doctor_found(f, DOCTOR_WARN, "name it under discovery: in the agent's configuration",
                                     "%s is an accelerator that no row knows", p->inventory->devices[i].pci);
                        return;
                }
        doctor_found(f, DOCTOR_PASS, "", "every accelerator's vendor is known");
}

static void check_links(const struct doctor_patient *p, struct doctor_finding *f)
{
        for (size_t i = 0; i < p->inventory->device_count; i++) {
                const struct device *d = &p->inventory->devices[i];
                char path[128];
                int64_t now, most;

                (void) text_format(path, sizeof(path), "sys/bus/pci/devices/%s/current_link_width", d->pci);
                if (d->pci[0] == '\0' || tree_read_int64(p->tree, path, &now) < 0)
                        continue;
                (void) text_format(path, sizeof(path), "sys/bus/pci/devices/%s/max_link_width", d->pci);
                if (tree_read_int64(p->tree, path, &most) < 0 || most < 1 || most > 32 || now >= most)
                        continue;
                doctor_found(f, DOCTOR_WARN,
                             "reseat the card or its riser; look at the slot's lanes in the firmware",
                             "%s (%s) has %lld of %lld PCIe lanes", d->id, d->pci, (long long) now,
                             (long long) most);
                return;
        }
        doctor_found(f, DOCTOR_PASS, "", "every PCIe link has all of its lanes");
}

static void check_numa(const struct doctor_patient *p, struct doctor_finding *f)
{
        bool several = tree_has(p->tree, "sys/devices/system/node/node1");

        for (size_t i = 0; several && i < p->inventory->device_count; i++)
                if (p->inventory->devices[i].numa < 0) {
                        doctor_found(f, DOCTOR_WARN,
                                     "turn on NUMA (and SRAT) in the firmware, or in the hypervisor",
                                     "the NUMA node of %s is not known", p->inventory->devices[i].id);
                        return;
                }
        doctor_found(f, DOCTOR_PASS, "", "the NUMA node of every device is known, or there is only one");
}

static void check_network(const struct doctor_patient *p, struct doctor_finding *f)
{
        uint64_t fastest = 0;

        for (size_t i = 0; i < p->inventory->hardware.network_count; i++)
                if (p->inventory->hardware.networks[i].mbps > fastest)
                        fastest = p->inventory->hardware.networks[i].mbps;
        if (fastest == 0)
                doctor_found(f, DOCTOR_WARN,
                             "training over several nodes wants 10 Gbit/s or more; `ethtool` shows links",
                             "no network interface tells its speed");
        else if (fastest < 10000)
                doctor_found(f, DOCTOR_WARN, "training over several nodes wants 10 Gbit/s or more",
                             "the fastest network interface has %llu Mbit/s", (unsigned long long) fastest);
        else
                doctor_found(f, DOCTOR_PASS, "", "the fastest network interface has %llu Mbit/s",
                             (unsigned long long) fastest);
}

const struct doctor_check doctor_checks_machine[] = {
        { "sysfs", false, check_sysfs },
        { "accelerators", false, check_accelerators },
        { "drivers", false, check_drivers },
        { "device files", false, check_files },
        { "bus", false, check_answers },
        { "PCIe links", false, check_links },
        { "identity", false, check_identity },
        { "unknown vendors", false, check_unknown },
        { "virtual machines", false, check_assigned },
        { "NUMA", false, check_numa },
        { "network", false, check_network },
        { NULL, false, NULL },
};
