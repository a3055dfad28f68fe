/* PCI: the functions of sys/bus/pci, or below sys/devices where that is missing; and one function's state. */
#include "agent/discovery/pci.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/ranges.h"
#include "base/text.h"

#define WALK_DEPTH_MAX 24

uint64_t pci_order(uint32_t domain, unsigned bus, unsigned device, unsigned function)
{
        return (uint64_t) domain << 32 | (uint64_t) (bus & 0xff) << 16 | (uint64_t) (device & 0x1f) << 8 |
               (function & 7);
}

/* A hexadecimal number of `min`..`max` digits. Return: what follows it, or NULL. */
static const char *hexadecimal(const char *s, size_t min, size_t max, uint32_t *ret)
{
        size_t length = strspn(s, "0123456789abcdefABCDEF");
        char digits[9];
        uint64_t value;

        if (length < min || length > max)
                return NULL;
        memcpy(digits, s, length);
        digits[length] = '\0';
        if (text_parse_hex64(digits, &value) < 0)
                return NULL;
        *ret = (uint32_t) value;
        return s + length;
}

int pci_parse_address(const char *text, uint64_t *ret_order)
{
        uint32_t domain, bus, device, function;
        const char *s = hexadecimal(text, 4, 8, &domain);

        s = s != NULL && *s == ':' ? hexadecimal(s + 1, 2, 2, &bus) : NULL;
        s = s != NULL && *s == ':' ? hexadecimal(s + 1, 2, 2, &device) : NULL;
        s = s != NULL && *s == '.' ? hexadecimal(s + 1, 1, 1, &function) : NULL;
        if (s == NULL || *s != '\0' || device > 0x1f || function > 7)
                return -EINVAL;
        *ret_order = pci_order(domain, bus, device, function);
        return 0;
}

void pci_format_address(uint64_t order, char *ret, size_t ret_bytes)
{
        (void) text_format(ret, ret_bytes, "%04x:%02x:%02x.%x", (unsigned) (order >> 32),
                           (unsigned) (order >> 16 & 0xff), (unsigned) (order >> 8 & 0x1f),
                           (unsigned) (order & 7));
}

const char *pci_path(const struct pci *pci, const struct pci_function *function)
{
        return pci->paths.data + function->path;
}

void pci_free(struct pci *pci)
{
        free(pci->functions);
        text_free(&pci->paths);
        *pci = (struct pci){ 0 };
}

/* Return: 0 also where the file cannot be made sense of, or was not looked at (tree_starved()). */
static uint64_t read_hex(const struct tree *tree, const char *directory, const char *name)
{
        char path[TREE_PATH_BYTES];
        uint64_t value = 0;

        if (text_format(path, sizeof(path), "%s/%s", directory, name))
                (void) tree_read_hex64(tree, path, &value);
        return value;
}

/* The value of a "KEY=value" line of the function's uevent; for trees that lack the file of its own. */
static bool uevent_value(const struct tree *tree, const char *directory, const char *key, char *ret,
                         size_t ret_bytes)
{
        char path[TREE_PATH_BYTES], text[TREE_VALUE_BYTES];
        const char *line;
        size_t length = strlen(key), size;

        if (!text_format(path, sizeof(path), "%s/uevent", directory) ||
            tree_read_text(tree, path, text, sizeof(text)) <= 0)
                return false;
        for (line = text; strncmp(line, key, length) != 0; line++)
                if ((line = strchr(line, '\n')) == NULL)
                        return false;
        size = strcspn(line + length, "\n");
        if (size == 0 || size >= ret_bytes)
                return false;
        memcpy(ret, line + length, size);
        ret[size] = '\0';
        return true;
}

static void use_uevent(const struct tree *tree, const char *directory, struct pci_function *function)
{
        char ids[16], class_code[16];
        uint64_t value;

        if (!uevent_value(tree, directory, "PCI_ID=", ids, sizeof(ids)) || strlen(ids) != 9 || ids[4] != ':')
                return;
        ids[4] = '\0';
        if (text_parse_hex64(ids, &value) == 0)
                function->vendor = (uint16_t) value;
        if (text_parse_hex64(ids + 5, &value) == 0)
                function->device = (uint16_t) value;
        if (uevent_value(tree, directory, "PCI_CLASS=", class_code, sizeof(class_code)) &&
            text_parse_hex64(class_code, &value) == 0)
                function->class_code = (uint32_t) value & 0xffffff;
}

/* A function without a readable vendor is nothing that anybody could claim. */
static int add_function(const struct tree *tree, const char *directory, const char *name, struct pci *pci)
{
        struct pci_function function = { .path = (uint32_t) pci->paths.size_bytes }, *added;
        char path[TREE_PATH_BYTES];

        if (pci_parse_address(name, &function.order) < 0 ||
            !text_format(path, sizeof(path), "%s/%s", directory, name))
                return 0;
        if (pci->count >= PCI_FUNCTIONS_MAX)
                return -E2BIG;
        pci_format_address(function.order, function.address, sizeof(function.address));
        function.class_code = (uint32_t) read_hex(tree, path, "class") & 0xffffff;
        function.vendor = (uint16_t) read_hex(tree, path, "vendor");
        if (function.vendor == 0)
                use_uevent(tree, path, &function);
        if (function.vendor == 0 || function.vendor == 0xffff)
                return 0;
        /* Bridges are most of a server's functions, and nobody asks for their device id. */
        if (function.class_code >> 16 != 0x06 && function.device == 0)
                function.device = (uint16_t) read_hex(tree, path, "device");
        text_append_bytes(&pci->paths, path, strlen(path) + 1);
        added = pci->paths.failed ? NULL
                                  : array_add(&pci->functions, &pci->count, &pci->capacity, sizeof(*added));
        if (added == NULL)
                return -ENOMEM;
        *added = function;
        return 0;
}

/* For trees that hold sys/devices alone: every directory below a host bridge that is named like an address.
 */
static int walk_bridge(const struct tree *tree, const char *directory, unsigned depth, struct pci *pci)
{
        struct tree_names names;
        int r = tree_list(tree, directory, &names);

        if (r < 0)
                return 0;
        for (size_t i = 0; r == 0 && i < names.count; i++) {
                char child[TREE_PATH_BYTES];
                uint64_t order;

                if (pci_parse_address(names.names[i], &order) < 0 ||
                    !text_format(child, sizeof(child), "%s/%s", directory, names.names[i]))
                        continue;
                r = add_function(tree, directory, names.names[i], pci);
                if (r == 0 && depth < WALK_DEPTH_MAX)
                        r = walk_bridge(tree, child, depth + 1, pci);
        }
        tree_names_free(&names);
        return r;
}

static int walk_devices(const struct tree *tree, struct pci *pci)
{
        struct tree_names names;
        int r = tree_list(tree, "sys/devices", &names);

        if (r < 0)
                return 0;
        for (size_t i = 0; r == 0 && i < names.count; i++) {
                char child[TREE_PATH_BYTES];

                if (text_starts_with(names.names[i], "pci") &&
                    text_format(child, sizeof(child), "sys/devices/%s", names.names[i]))
                        r = walk_bridge(tree, child, 0, pci);
        }
        tree_names_free(&names);
        return r;
}

static int by_order(const void *a, const void *b)
{
        const struct pci_function *x = a, *y = b;

        return x->order < y->order ? -1 : x->order > y->order;
}

int pci_scan(const struct tree *tree, struct pci *ret)
{
        struct tree_names names;
        int r = tree_list(tree, "sys/bus/pci/devices", &names);

        *ret = (struct pci){ 0 };
        if (r == -ENOENT)
                r = walk_devices(tree, ret);
        else if (r < 0)
                return r;
        if (names.count > PCI_FUNCTIONS_MAX)
                r = -E2BIG;
        for (size_t i = 0; r == 0 && i < names.count; i++)
                r = add_function(tree, "sys/bus/pci/devices", names.names[i], ret);
        tree_names_free(&names);
        if (r == 0)
                r = tree_starved(tree); /* no scan is better than one that takes a chip for gone */
        if (r < 0)
                pci_free(ret);
        else if (ret->count > 1)
                qsort(ret->functions, ret->count, sizeof(*ret->functions), by_order);
        return r;
}

struct pci_function *pci_find(const struct pci *pci, const char *address)
{
        struct pci_function key;

        if (pci->count == 0 || pci_parse_address(address, &key.order) < 0)
                return NULL;
        return bsearch(&key, pci->functions, pci->count, sizeof(key), by_order);
}

void pci_physical(const struct tree *tree, const struct pci *pci, const struct pci_function *function,
                  char *ret, size_t ret_bytes)
{
        char path[TREE_PATH_BYTES];
        uint64_t order;

        ret[0] = '\0';
        if (!text_format(path, sizeof(path), "%s/physfn", pci_path(pci, function)) ||
            tree_link_name(tree, path, ret, ret_bytes) < 0 || pci_parse_address(ret, &order) < 0)
                ret[0] = '\0';
}

bool pci_address_of(const struct tree *tree, const char *path, char *ret, size_t ret_bytes)
{
        char real[TREE_PATH_BYTES], uevent[TREE_VALUE_BYTES];
        const char *slot;
        uint64_t order;

        if (tree_realpath(tree, path, real, sizeof(real)) < 0)
                return false;
        slot = strrchr(real, '/');
        if (slot != NULL && pci_parse_address(slot + 1, &order) == 0) {
                pci_format_address(order, ret, ret_bytes);
                return true;
        }
        if (!text_format(real, sizeof(real), "%s/uevent", path) ||
            tree_read_text(tree, real, uevent, sizeof(uevent)) < 0)
                return false;
        slot = strstr(uevent, "PCI_SLOT_NAME=");
        if (slot == NULL)
                return false;
        slot += strlen("PCI_SLOT_NAME=");
        uevent[(size_t) (slot - uevent) + strcspn(slot, "\n")] = '\0';
        if (pci_parse_address(slot, &order) < 0)
                return false;
        pci_format_address(order, ret, ret_bytes);
        return true;
}

/* "sys/devices/pci0000:17/0000:17:00.0/0000:18:00.0/0000:19:00.0": all but the function itself. */
static void find_bridges(const char *real, char *ret, size_t ret_bytes)
{
        const char *bridge = strstr(real, "/pci"), *end = strrchr(real, '/');

        ret[0] = '\0';
        if (bridge == NULL || !isxdigit((unsigned char) bridge[strlen("/pci")]) || end <= bridge + 1 ||
            (size_t) (end - bridge - 1) >= ret_bytes)
                return;
        memcpy(ret, bridge + 1, (size_t) (end - bridge - 1));
        ret[end - bridge - 1] = '\0';
}

size_t pci_root_port(const char *bridges)
{
        const char *port = strchr(bridges, '/'), *below = port == NULL ? NULL : strchr(port + 1, '/');

        return below == NULL ? 0 : (size_t) (below - bridges);
}

size_t pci_common_switch(const char *bridges, const char *other)
{
        size_t shared = 0, root = pci_root_port(bridges);

        for (size_t i = 0; root > 0; i++) {
                bool ends = bridges[i] == '/' || bridges[i] == '\0';

                if (ends && (other[i] == '/' || other[i] == '\0') && i > root)
                        shared = i;
                if (bridges[i] != other[i] || bridges[i] == '\0')
                        break;
        }
        return shared;
}

static bool read_number(const struct tree *tree, const char *directory, const char *name, int64_t *ret)
{
        char path[TREE_PATH_BYTES];

        return text_format(path, sizeof(path), "%s/%s", directory, name) &&
               tree_read_int64(tree, path, ret) == 0;
}

static bool holds(const char *list, unsigned wanted)
{
        unsigned members[1024];
        int count = ranges_parse(list, members, ARRAY_SIZE(members));

        for (int i = 0; i < count && i < (int) ARRAY_SIZE(members); i++)
                if (members[i] == wanted)
                        return true;
        return false;
}

/* The NUMA node of the first of the function's local processors; -1 = none. */
static int numa_of_cpus(const struct tree *tree, const char *directory)
{
        char path[TREE_PATH_BYTES], text[TREE_VALUE_BYTES];
        unsigned nodes[64], wanted;
        int count = 0;

        if (!text_format(path, sizeof(path), "%s/local_cpulist", directory) ||
            tree_read_text(tree, path, text, sizeof(text)) <= 0 || ranges_parse(text, &wanted, 1) < 1)
                return -1;
        if (tree_read_text(tree, "sys/devices/system/node/online", text, sizeof(text)) > 0)
                count = ranges_parse(text, nodes, ARRAY_SIZE(nodes));
        for (int i = 0; i < count && i < (int) ARRAY_SIZE(nodes); i++) {
                (void) text_format(path, sizeof(path), "sys/devices/system/node/node%u/cpulist", nodes[i]);
                if (tree_read_text(tree, path, text, sizeof(text)) > 0 && holds(text, wanted))
                        return (int) nodes[i];
        }
        return -1;
}

/* numa_node, then that of the bridges above, then the local processors, then 0: "not known" is common on
 * machines with one socket and in virtual machines, where 0 is right. */
static int find_numa(const struct tree *tree, const char *directory, const char *real)
{
        char above[TREE_PATH_BYTES];
        int64_t numa;
        int node;

        if (read_number(tree, directory, "numa_node", &numa) && numa >= 0 && numa < 65536)
                return (int) numa;
        (void) text_copy(above, sizeof(above), real);
        for (char *slash; (slash = strrchr(above, '/')) != NULL && strstr(above, "/pci") != NULL;) {
                *slash = '\0';
                if (read_number(tree, above, "numa_node", &numa) && numa >= 0 && numa < 65536)
                        return (int) numa;
        }
        node = numa_of_cpus(tree, directory);
        return node >= 0 ? node : 0;
}

/* A device that sleeps is not woken only to see whether it answers. */
static bool is_suspended(const struct tree *tree, const char *directory)
{
        char path[TREE_PATH_BYTES], status[32];

        return text_format(path, sizeof(path), "%s/power/runtime_status", directory) &&
               tree_read_text(tree, path, status, sizeof(status)) > 0 && strcmp(status, "suspended") == 0;
}

static bool is_lost(const struct tree *tree, const char *directory)
{
        static const unsigned char ones[4] = { 0xff, 0xff, 0xff, 0xff };
        unsigned char config[64];
        char path[TREE_PATH_BYTES];

        return text_format(path, sizeof(path), "%s/config", directory) &&
               tree_read(tree, path, config, sizeof(config)) >= (ssize_t) sizeof(ones) &&
               memcmp(config, ones, sizeof(ones)) == 0 && !is_suspended(tree, directory);
}

/* What the link promises: what the function can do, but not more than the port above it can. */
static void read_width(const struct tree *tree, const char *directory, const char *real,
                       struct pci_state *ret)
{
        char above[TREE_PATH_BYTES];
        int64_t now, max, port;
        char *slash;

        if (!read_number(tree, directory, "current_link_width", &now) || now < 0 || now > 255)
                return;
        ret->has_width = true;
        ret->width = (unsigned) now;
        if (!read_number(tree, directory, "max_link_width", &max) || max <= 0 || max >= 255)
                return;
        ret->promised_width = (unsigned) max;
        if (now >= max)
                return;
        (void) text_copy(above, sizeof(above), real);
        slash = strrchr(above, '/');
        if (slash == NULL)
                return;
        *slash = '\0';
        if (read_number(tree, above, "max_link_width", &port) && port > 0 && port < max)
                ret->promised_width = (unsigned) port;
}

void pci_read_state(const struct tree *tree, const struct pci *pci, const struct pci_function *function,
                    struct pci_state *ret)
{
        const char *directory = pci_path(pci, function);
        char path[TREE_PATH_BYTES], real[TREE_PATH_BYTES];

        *ret = (struct pci_state){ 0 };
        if (tree_realpath(tree, directory, real, sizeof(real)) < 0)
                (void) text_copy(real, sizeof(real), directory);
        find_bridges(real, ret->bridges, sizeof(ret->bridges));
        if (text_format(path, sizeof(path), "%s/driver", directory) &&
            tree_link_name(tree, path, ret->driver, sizeof(ret->driver)) < 0 &&
            !uevent_value(tree, directory, "DRIVER=", ret->driver, sizeof(ret->driver)))
                ret->driver[0] = '\0';
        ret->numa = find_numa(tree, directory, real);
        ret->lost = is_lost(tree, directory);
        read_width(tree, directory, real, ret);
}
