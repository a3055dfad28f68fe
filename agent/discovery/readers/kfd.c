/* KFD devices: what AMD and Hygon have in common. The compute devices are KFD's GPU nodes: one a function, or
 * several where it is partitioned; hives and links are KFD's too. A tree that holds KFD alone (a container's
 * view) is enough. */
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/accelerators.h"
#include "agent/discovery/kfd.h"
#include "agent/discovery/reader.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

#define PARTITIONS_MAX   64
#define INTEGRATED_BYTES ((uint64_t) 4 << 30) /* less memory of its own has an integrated GPU's carve-out */

/* "ue: 3" of ras/BLOCK_err_count; 0 when there is none. */
static uint64_t uncorrectable(const char *text)
{
        const char *at = strstr(text, "ue:");
        char digits[24];
        uint64_t count;
        size_t size;

        if (at == NULL)
                return 0;
        at += strlen("ue:");
        at += strspn(at, " \t");
        size = strspn(at, "0123456789");
        if (size == 0 || size >= sizeof(digits))
                return 0;
        memcpy(digits, at, size);
        digits[size] = '\0';
        return text_parse_uint64(digits, &count) == 0 ? count : 0;
}

static void judge_errors(const struct scan *scan, struct sighting *sighting)
{
        char directory[TREE_PATH_BYTES], name[300], text[256];
        struct tree_names names;

        if (sighting->function == NULL ||
            !text_format(directory, sizeof(directory), "%s/ras", pci_path(&scan->pci, sighting->function)) ||
            tree_list(scan->tree, directory, &names) < 0)
                return;
        for (size_t i = 0; i < names.count; i++) {
                if (!text_ends_with(names.names[i], "_err_count") ||
                    !text_format(name, sizeof(name), "ras/%s", names.names[i]) ||
                    sighting_read(scan, sighting, name, text, sizeof(text)) <= 0 || uncorrectable(text) == 0)
                        continue;
                sighting_judge(sighting, HEALTH_UNHEALTHY, "UncorrectableErrors", "amd-ras",
                               "%s counts %llu uncorrectable errors since its last reset", names.names[i],
                               (unsigned long long) uncorrectable(text));
        }
        tree_names_free(&names);
}

static uint64_t read_vram(const struct scan *scan, const struct sighting *sighting)
{
        char text[64];
        uint64_t bytes;

        return sighting_read(scan, sighting, "mem_info_vram_total", text, sizeof(text)) > 0 &&
                               text_parse_uint64(text, &bytes) == 0
                       ? bytes
                       : 0;
}

static void add_drm_nodes(struct scan *scan, struct sighting *sighting, unsigned render_minor)
{
        unsigned card;

        if (render_minor != 0)
                sighting_add_node(scan, sighting, true, "/dev/dri/renderD%u", render_minor);
        if (sighting->function != NULL && scan_class_number(scan, sighting->function, "drm", "card", &card))
                sighting_add_node(scan, sighting, false, "/dev/dri/card%u", card);
}

static void set_hive(const struct kfd *kfd, const struct kfd_node *node, struct scan_placement *placement)
{
        size_t island = 0;

        for (size_t i = 0; i < kfd->count; i++)
                island += kfd->nodes[i].hive == 0 && kfd->nodes[i].island == node->island;
        if (node->hive != 0)
                scan_set_fabric(placement, "xgmi", "kfd", -1, "hive-%llx", (unsigned long long) node->hive);
        else if (island > 1)
                scan_set_fabric(placement, "xgmi", "kfd", -1, "island-%u", node->island);
        placement->needs_company = true;
}

/* The last four hexadecimal digits of the id are the partition's, where unique_id is that of the package. */
static void set_identity(const struct kfd_node *node, size_t part, size_t parts, struct device *device)
{
        char base[DEVICE_ID_BYTES - 16];

        (void) text_copy(base, sizeof(base), device->id);
        if (node->unique != 0)
                (void) text_format(base, sizeof(base), "GPU-%016llx", (unsigned long long) node->unique);
        (void) text_format(device->id, sizeof(device->id), parts > 1 ? "%s-p%zu" : "%s", base, part);
}

static void set_partition(const struct scan *scan, const struct sighting *sighting, size_t part, size_t parts,
                          struct sighting *ret)
{
        char mode[16] = "";

        if (parts < 2)
                return;
        (void) sighting_read(scan, sighting, "current_compute_partition", mode, sizeof(mode));
        (void) text_format(ret->device.partition, sizeof(ret->device.partition), "%s-%zu",
                           mode[0] != '\0' ? mode : "part", part);
        ret->placement.tflops_bf16 /= (double) parts;
        ret->placement.tflops_fp16 /= (double) parts;
        ret->placement.tflops_fp32 /= (double) parts;
}

static int add_node(struct scan *scan, const struct sighting *sighting, const struct kfd_node *node,
                    size_t part, size_t parts)
{
        struct sighting one = *sighting;

        set_identity(node, part, parts, &one.device);
        set_partition(scan, sighting, part, parts, &one);
        if (node->memory_bytes != 0)
                one.device.memory_bytes = node->memory_bytes;
        else if (parts > 1)
                one.device.memory_bytes /= parts;
        set_hive(&scan->kfd, node, &one.placement);
        if (parts > 1 && one.placement.fabric[0] == '\0')
                scan_set_fabric(&one.placement, "package", "kfd", -1, "%s", one.device.pci);
        add_drm_nodes(scan, &one, node->render_minor);
        return scan_add(scan, &one.device, &one.placement);
}

/* Indexes of the function's KFD nodes: those at its address, or the one that has its render node. */
static size_t find_nodes(struct scan *scan, const struct pci_function *function, size_t *ret)
{
        const struct kfd *kfd = &scan->kfd;
        unsigned render;
        size_t count = 0;

        for (size_t i = 0; i < kfd->count && count < PARTITIONS_MAX; i++)
                if (kfd->nodes[i].vendor == function->vendor && kfd->nodes[i].order == function->order)
                        ret[count++] = i;
        if (count > 0 || kfd->count == 0 || !scan_class_number(scan, function, "drm", "renderD", &render))
                return count;
        for (size_t i = 0; i < kfd->count && count == 0; i++)
                if (kfd->nodes[i].vendor == function->vendor && kfd->nodes[i].render_minor == render)
                        ret[count++] = i;
        return count;
}

static int add_without_kfd(struct scan *scan, struct sighting *sighting)
{
        char text[64];
        unsigned render;
        uint64_t unique;

        if (sighting_read(scan, sighting, "unique_id", text, sizeof(text)) > 0 &&
            text_parse_hex64(text, &unique) == 0 && unique != 0)
                (void) text_format(sighting->device.id, sizeof(sighting->device.id), "GPU-%016llx",
                                   (unsigned long long) unique);
        if (scan_class_number(scan, sighting->function, "drm", "renderD", &render))
                add_drm_nodes(scan, sighting, render);
        return scan_add(scan, &sighting->device, &sighting->placement);
}

static int add_function(struct scan *scan, struct sighting *sighting)
{
        size_t nodes[PARTITIONS_MAX], count = find_nodes(scan, sighting->function, nodes);
        uint64_t vram = read_vram(scan, sighting);

        if (vram != 0)
                sighting->device.memory_bytes = vram;
        judge_errors(scan, sighting);
        if (count == 0)
                return add_without_kfd(scan, sighting);
        for (size_t i = 0; i < count; i++, sighting->device.index++) {
                int r = add_node(scan, sighting, &scan->kfd.nodes[nodes[i]], i, count);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* How many nodes stand at the same address, and how many of them come before this one. */
static void count_parts(const struct kfd *kfd, size_t i, size_t *ret_part, size_t *ret_parts)
{
        *ret_part = *ret_parts = 0;
        for (size_t j = 0; j < kfd->count; j++)
                if (kfd->nodes[j].vendor == kfd->nodes[i].vendor &&
                    kfd->nodes[j].order == kfd->nodes[i].order) {
                        *ret_part += j < i;
                        (*ret_parts)++;
                }
}

static int add_nodes_alone(struct scan *scan, const struct vendor *vendor, uint16_t pci_vendor)
{
        unsigned rank = 0;

        for (size_t i = 0; i < scan->kfd.count; i++) {
                const struct kfd_node *node = &scan->kfd.nodes[i];
                struct sighting sighting;
                char address[PCI_ADDRESS_BYTES];
                size_t part, parts;
                int r;

                pci_format_address(node->order, address, sizeof(address));
                /* Where the tree shows PCI functions, what is not among them has left the machine. */
                if (node->vendor != pci_vendor || scan->pci.count > 0)
                        continue;
                sighting_begin(vendor, &sighting);
                (void) text_copy(sighting.device.pci, sizeof(sighting.device.pci), address);
                (void) text_copy(sighting.device.id, sizeof(sighting.device.id), address);
                sighting.device.index = rank++;
                sighting.device.numa = (int) node->numa;
                sighting_set_model(scan, &sighting, node->vendor, node->device);
                count_parts(&scan->kfd, i, &part, &parts);
                r = add_node(scan, &sighting, node, part, parts);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A card that no table knows counts when KFD computes on it. */
static int add_amd_others(struct scan *scan, const struct vendor *vendor)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < scan->kfd.count; i++) {
                const struct kfd_node *node = &scan->kfd.nodes[i];
                struct pci_function *function;
                char address[PCI_ADDRESS_BYTES];

                pci_format_address(node->order, address, sizeof(address));
                function = node->vendor == 0x1002 && node->memory_bytes >= INTEGRATED_BYTES
                                   ? pci_find(&scan->pci, address)
                                   : NULL;
                if (function != NULL && !function->claimed && function->class_code >> 16 == 0x03)
                        r = accelerators_add_function(scan, vendor, function, 0);
        }
        return r == 0 ? add_nodes_alone(scan, vendor, 0x1002) : r;
}

static int add_hygon_others(struct scan *scan, const struct vendor *vendor)
{
        return add_nodes_alone(scan, vendor, vendor->pci_vendors[0]);
}

const struct reader reader_amd = { .vendor = &vendor_amd, .add = add_function, .add_others = add_amd_others };
const struct reader reader_hygon = { .vendor = &vendor_hygon,
                                     .add = add_function,
                                     .add_others = add_hygon_others };
