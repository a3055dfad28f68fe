#include "agent/discovery/network.h"

#include <string.h>

#include "base/text.h"

#define TYPE_ETHERNET   1  /* ARPHRD_ETHER */
#define TYPE_INFINIBAND 32 /* ARPHRD_INFINIBAND */

static bool read_number(const struct tree *tree, const char *interface, const char *name, int64_t *ret)
{
        char path[TREE_PATH_BYTES];

        return text_format(path, sizeof(path), "sys/class/net/%s/%s", interface, name) &&
               tree_read_int64(tree, path, ret) == 0;
}

/* "200 Gb/sec (4X HDR)" of the interface's InfiniBand device, in Mbit/s; 0 = not known. */
static uint64_t infiniband_rate(const struct tree *tree, const char *interface)
{
        char path[TREE_PATH_BYTES], rate[64];
        struct tree_names names;
        double gigabits = 0;

        if (!text_format(path, sizeof(path), "sys/class/net/%s/device/infiniband", interface) ||
            tree_list(tree, path, &names) < 0)
                return 0;
        if (names.count > 0 &&
            text_format(path, sizeof(path), "sys/class/net/%s/device/infiniband/%s/ports/1/rate", interface,
                        names.names[0]) &&
            tree_read_text(tree, path, rate, sizeof(rate)) > 0) {
                rate[strspn(rate, "0123456789.")] = '\0';
                if (text_parse_double(rate, &gigabits) < 0 || gigabits < 0 || gigabits > 1e6)
                        gigabits = 0;
        }
        tree_names_free(&names);
        return (uint64_t) (gigabits * 1000);
}

/* Bridges, veth pairs, bonds and the like have no device; a virtual function serves somebody else's machine.
 */
static void add_interface(const struct tree *tree, const char *name, struct hardware *ret)
{
        struct network_interface *network = &ret->networks[ret->network_count];
        char path[TREE_PATH_BYTES];
        int64_t type, speed;

        if (ret->network_count == NETWORKS_MAX || !read_number(tree, name, "type", &type) ||
            (type != TYPE_ETHERNET && type != TYPE_INFINIBAND))
                return;
        if (!text_format(path, sizeof(path), "sys/class/net/%s/device", name) || !tree_has(tree, path) ||
            !text_format(path, sizeof(path), "sys/class/net/%s/device/physfn", name) || tree_has(tree, path))
                return;
        *network = (struct network_interface){ 0 };
        if (!text_copy(network->name, sizeof(network->name), name))
                return;
        (void) text_copy(network->kind, sizeof(network->kind),
                         type == TYPE_ETHERNET ? "ethernet" : "infiniband");
        if (read_number(tree, name, "speed", &speed) && speed > 0 && speed < 100000000)
                network->mbps = (uint64_t) speed; /* an interface without carrier says -1 or nothing */
        else if (type == TYPE_INFINIBAND)
                network->mbps = infiniband_rate(tree, name);
        ret->network_count++;
}

void scan_networks(const struct tree *tree, struct hardware *ret)
{
        struct tree_names names;

        if (tree_list(tree, "sys/class/net", &names) < 0)
                return;
        for (size_t i = 0; i < names.count; i++)
                add_interface(tree, names.names[i], ret);
        tree_names_free(&names);
}
