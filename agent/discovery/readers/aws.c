/* AWS Neuron. The driver's class devices have no link to their PCI functions: the N-th by address is taken
 * for neuronN. connected_devices tells which chips NeuronLink joins. */
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/reader.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

#define CHIPS_MAX 64

static const char *const roots[] = { "sys/class/neuron_device", "sys/devices/virtual/neuron_device" };

static bool has_chip(const struct scan *scan, unsigned chip, const char *name)
{
        char path[TREE_PATH_BYTES];
        bool has = false;

        for (size_t i = 0; i < 2 && !has; i++) {
                (void) text_format(path, sizeof(path), "%s/neuron%u/%s", roots[i], chip, name);
                has = tree_has(scan->tree, path);
        }
        return has;
}

static ssize_t read_chip(const struct scan *scan, unsigned chip, const char *name, char *text,
                         size_t text_bytes)
{
        char path[TREE_PATH_BYTES];
        ssize_t size = -1;

        for (size_t i = 0; i < 2 && size < 0; i++) {
                (void) text_format(path, sizeof(path), "%s/neuron%u/%s", roots[i], chip, name);
                size = tree_read_text(scan->tree, path, text, text_bytes);
        }
        return size;
}

/* A number that is more than zero in an attribute of the chip. */
static bool counts_something(const struct scan *scan, unsigned chip, const char *name)
{
        char text[64];
        uint64_t count;

        return read_chip(scan, chip, name, text, sizeof(text)) > 0 && text_parse_uint64(text, &count) == 0 &&
               count > 0;
}

static void judge_chip(const struct scan *scan, struct sighting *sighting)
{
        static const char *const counters[] = { "stats/hardware/sram_ecc_uncorrected",
                                                "stats/hardware/mem_ecc_uncorrected" };
        static const char *const errors[] = { "hw_error", "hw_hbm_ue_error", "hw_nc_ue_error",
                                              "hw_dma_abort_error" };
        char name[96];

        for (size_t i = 0; i < 2; i++)
                if (counts_something(scan, sighting->number, counters[i]))
                        sighting_judge(sighting, HEALTH_UNHEALTHY, "UncorrectableErrors", "neuron-ecc",
                                       "%s is not zero", counters[i]);
        for (unsigned core = 0; core < 8; core++) {
                (void) text_format(name, sizeof(name), "neuron_core%u", core);
                if (!has_chip(scan, sighting->number, name))
                        break;
                for (size_t i = 0; i < 4; i++) {
                        (void) text_format(name, sizeof(name), "neuron_core%u/stats/status/%s/total", core,
                                           errors[i]);
                        if (counts_something(scan, sighting->number, name))
                                sighting_judge(sighting, HEALTH_UNHEALTHY, "HardwareError", "neuron-status",
                                               "core %u counts %s", core, errors[i]);
                }
        }
}

/* The lowest chip that can be reached over NeuronLink from `chip`; -1 when its links are not known. */
static int find_island(const struct scan *scan, unsigned chip)
{
        bool seen[CHIPS_MAX] = { false };
        unsigned queue[CHIPS_MAX], lowest = chip;
        size_t done = 0, count = 0;

        if (chip >= CHIPS_MAX)
                return -1;
        seen[chip] = true;
        queue[count++] = chip;
        while (done < count) {
                char text[TREE_VALUE_BYTES], *save = NULL;

                if (read_chip(scan, queue[done++], "connected_devices", text, sizeof(text)) <= 0)
                        continue;
                for (char *word = strtok_r(text, ", \t\n", &save); word != NULL;
                     word = strtok_r(NULL, ", \t\n", &save)) {
                        uint64_t other;

                        if (text_parse_uint64(word, &other) < 0 || other >= CHIPS_MAX || seen[other])
                                continue;
                        seen[other] = true;
                        queue[count++] = (unsigned) other;
                        lowest = other < lowest ? (unsigned) other : lowest;
                }
        }
        return count > 1 ? (int) lowest : -1;
}

static int add_chip(struct scan *scan, struct sighting *sighting)
{
        char text[96];
        int island = find_island(scan, sighting->number);

        if (strchr(sighting->device.model, ':') != NULL || sighting->device.model[0] == '\0')
                if (read_chip(scan, sighting->number, "info/architecture/device_name", text, sizeof(text)) >
                    0)
                        sighting_set_model_name(sighting, text);
        if (read_chip(scan, sighting->number, "info/serial_number", text, sizeof(text)) > 0)
                sighting_set_serial(sighting, text);
        judge_chip(scan, sighting);
        if (island >= 0)
                scan_set_fabric(&sighting->placement, "neuronlink", "sysfs", -1, "%d", island);
        sighting->placement.needs_company = true;
        return sighting_add(scan, sighting);
}

/* A container may see the class and not the functions. */
static int add_others(struct scan *scan, const struct vendor *vendor)
{
        struct tree_names names = { 0 };
        int r = 0;

        if (scan_has_devices(scan, vendor->name) ||
            (tree_list(scan->tree, roots[0], &names) < 0 && tree_list(scan->tree, roots[1], &names) < 0))
                return 0;
        for (size_t i = 0; r == 0 && i < names.count; i++) {
                struct sighting sighting;
                uint64_t number;

                if (!text_starts_with(names.names[i], "neuron") ||
                    text_parse_uint64(names.names[i] + strlen("neuron"), &number) < 0 || number >= CHIPS_MAX)
                        continue;
                sighting_begin(vendor, &sighting);
                sighting.device.index = sighting.rank = (unsigned) number;
                sighting.device.numa = 0;
                (void) text_format(sighting.device.id, sizeof(sighting.device.id), "aws-neuron%u",
                                   (unsigned) number);
                sighting_set_number(&sighting, (unsigned) number);
                r = add_chip(scan, &sighting);
        }
        tree_names_free(&names);
        return r;
}

const struct reader reader_aws = {
        .vendor = &vendor_aws,
        .add = add_chip,
        .add_others = add_others,
};
