/* Discovery: the order of the steps, and the limits that hold for all of them. */
#include "agent/discovery/discovery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/accelerators.h"
#include "agent/discovery/cpu.h"
#include "agent/discovery/fabric.h"
#include "agent/discovery/groups.h"
#include "agent/discovery/hardware.h"
#include "agent/discovery/scan.h"

static void read_boot_id(const struct tree *tree, struct inventory *inventory)
{
        (void) tree_read_text(tree, "proc/sys/kernel/random/boot_id", inventory->boot_id,
                              sizeof(inventory->boot_id));
}

int discovery_run(const struct tree *tree, const struct discovery_options *options, struct inventory *ret,
                  struct err *err)
{
        return discovery_run_linked(tree, options, NULL, ret, err);
}

int discovery_run_linked(const struct tree *tree, const struct discovery_options *options,
                         const struct link_report_list *links, struct inventory *ret, struct err *err)
{
        static const struct discovery_options defaults = { 0 };
        struct inventory inventory;
        struct scan scan = { .tree = tree,
                             .options = options != NULL ? options : &defaults,
                             .links = links,
                             .inventory = &inventory };
        int r;

        inventory_init(ret);
        inventory_init(&inventory);
        tree_budget(tree, DISCOVERY_OPERATIONS);
        scan.has_dev = tree_kind(tree, "dev") == TREE_DIRECTORY;
        read_boot_id(tree, &inventory);
        hardware_read(tree, &inventory.hardware);
        r = accelerators_scan(&scan, err);
        if (r == 0)
                r = cpu_scan(&scan, err);
        if (r == 0)
                r = groups_sort(&scan, err);
        if (r == 0) {
                groups_keep_out(&scan);
                fabric_adopt(&scan);
                fabric_link(&scan);
                fabric_place(&scan);
                r = groups_form(&scan, err);
        }
        if (tree_starved(tree) < 0)
                r = err_set(err, tree_starved(tree),
                            "'%s' could not be looked at whole: %s; nothing there is taken "
                            "for gone",
                            tree_root(tree), strerror(-tree_starved(tree)));
        if (r == 0 && tree_exhausted(tree))
                r = err_set(err, -E2BIG, "'%s' is larger than any machine: refused after looking at %d files",
                            tree_root(tree), DISCOVERY_OPERATIONS);
        tree_budget(tree, UINT64_MAX);
        for (size_t i = 0; i < inventory.device_count; i++)
                inventory.devices[i].ordinal = inventory.devices[i].index;
        scan_free(&scan);
        if (r < 0) {
                inventory_free(&inventory);
                return r;
        }
        *ret = inventory;
        return 0;
}
