/* KFD: the properties files of its nodes, links and memory banks. */
#include "agent/discovery/kfd.h"

#include <stdlib.h>
#include <string.h>

#include "agent/discovery/pci.h"
#include "base/text.h"

#define NODES          "sys/class/kfd/kfd/topology/nodes"
#define LINK_XGMI      11
#define HEAP_PUBLIC    1 /* kernel: KFD heap types of device memory, FB_PUBLIC and FB_PRIVATE */
#define HEAP_PRIVATE   2
#define PROPERTIES_MAX (2 * TREE_VALUE_BYTES)

/* "key value" lines. Return: 0 when the key is not there or is no number. */
static uint64_t property(const char *text, const char *key)
{
        size_t length = strlen(key);

        for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
                char digits[24];
                uint64_t value;
                size_t size;

                line += *line == '\n';
                if (strncmp(line, key, length) != 0 || line[length] != ' ')
                        continue;
                size = strspn(line + length + 1, "0123456789");
                if (size == 0 || size >= sizeof(digits))
                        return 0;
                memcpy(digits, line + length + 1, size);
                digits[size] = '\0';
                return text_parse_uint64(digits, &value) == 0 ? value : 0;
        }
        return 0;
}

static bool read_properties(const struct tree *tree, const char *path, char *text)
{
        ssize_t size = tree_read(tree, path, text, PROPERTIES_MAX - 1);

        text[size > 0 ? size : 0] = '\0';
        return size > 0;
}

static uint64_t read_memory(const struct tree *tree, unsigned node)
{
        char path[128], text[PROPERTIES_MAX];
        uint64_t total = 0;

        for (unsigned bank = 0; bank < 8; bank++) {
                uint64_t heap;

                (void) text_format(path, sizeof(path), NODES "/%u/mem_banks/%u/properties", node, bank);
                if (!read_properties(tree, path, text))
                        break;
                heap = property(text, "heap_type");
                if (heap == HEAP_PUBLIC || heap == HEAP_PRIVATE || strstr(text, "heap_type") == NULL)
                        total += property(text, "size_in_bytes");
        }
        return total;
}

/* One node; a CPU node, or one that the process may not see, is passed over. */
static void read_node(const struct tree *tree, unsigned number, struct kfd *kfd)
{
        struct kfd_node *node = &kfd->nodes[kfd->count];
        char path[128], text[PROPERTIES_MAX];
        uint64_t location;

        (void) text_format(path, sizeof(path), NODES "/%u/properties", number);
        if (kfd->count >= KFD_NODES_MAX || !read_properties(tree, path, text) ||
            property(text, "simd_count") == 0)
                return;
        location = property(text, "location_id");
        *node = (struct kfd_node){
                .number = number,
                .vendor = (uint16_t) property(text, "vendor_id"),
                .device = (uint16_t) property(text, "device_id"),
                .order = pci_order((uint32_t) property(text, "domain"), (unsigned) (location >> 8 & 0xff),
                                   (unsigned) (location >> 3 & 0x1f), (unsigned) (location & 7)),
                .render_minor = (unsigned) property(text, "drm_render_minor"),
                .hive = property(text, "hive_id"),
                .unique = property(text, "unique_id"),
                .memory_bytes = property(text, "local_mem_size"),
                .numa = -1,
                .island = number,
        };
        if (node->memory_bytes == 0)
                node->memory_bytes = read_memory(tree, number);
        kfd->count++;
}

static struct kfd_node *find_node(struct kfd *kfd, uint64_t number)
{
        for (size_t i = 0; i < kfd->count; i++)
                if (kfd->nodes[i].number == number)
                        return &kfd->nodes[i];
        return NULL;
}

static void join(struct kfd *kfd, unsigned a, unsigned b)
{
        unsigned low = a < b ? a : b, high = a < b ? b : a;

        for (size_t i = 0; i < kfd->count; i++)
                if (kfd->nodes[i].island == high)
                        kfd->nodes[i].island = low;
}

static void add_link(struct kfd_node *node, const struct kfd_node *other, uint64_t megabytes_per_second)
{
        struct kfd_link *link = &node->links[node->link_count];
        uint64_t units = (megabytes_per_second + 12500) / 25000;

        if (node->link_count == KFD_LINKS_MAX)
                return;
        node->link_count++;
        link->order = other->order;
        link->width = units < 1 ? 1 : units > 1000 ? 1000 : (unsigned) units;
}

/* xGMI links: what they reach is one island (of use where older kernels name no hive). The node that is no
 * GPU at the other end of a link is a processor, and KFD numbers those like NUMA nodes. */
static void read_links(const struct tree *tree, bool with_numa, struct kfd_node *node, struct kfd *kfd)
{
        char directory[128], path[TREE_PATH_BYTES], text[PROPERTIES_MAX];
        struct tree_names names;

        (void) text_format(directory, sizeof(directory), NODES "/%u/io_links", node->number);
        if (tree_list(tree, directory, &names) < 0)
                return;
        for (size_t i = 0; i < names.count; i++) {
                struct kfd_node *other;

                if (!text_format(path, sizeof(path), "%s/%s/properties", directory, names.names[i]) ||
                    !read_properties(tree, path, text))
                        continue;
                other = find_node(kfd, property(text, "node_to"));
                if (other == NULL && (with_numa || node->hive == 0) && node->numa < 0 &&
                    property(text, "node_to") < 65536)
                        node->numa = (int) property(text, "node_to");
                if (other == NULL || property(text, "type") != LINK_XGMI)
                        continue;
                if (node->hive == 0)
                        join(kfd, node->island, other->island);
                add_link(node, other, property(text, "max_bandwidth"));
        }
        tree_names_free(&names);
}

static int by_number(const void *a, const void *b)
{
        const struct kfd_node *x = a, *y = b;

        return x->number < y->number ? -1 : x->number > y->number;
}

void kfd_scan(const struct tree *tree, bool with_numa, struct kfd *ret)
{
        struct tree_names names;

        ret->count = 0;
        if (tree_list(tree, NODES, &names) < 0)
                return;
        for (size_t i = 0; i < names.count; i++) {
                uint64_t number;

                if (text_parse_uint64(names.names[i], &number) == 0 && number < 65536)
                        read_node(tree, (unsigned) number, ret);
        }
        tree_names_free(&names);
        qsort(ret->nodes, ret->count, sizeof(*ret->nodes), by_number);
        for (size_t i = 0; i < ret->count; i++)
                read_links(tree, with_numa, &ret->nodes[i], ret);
}
