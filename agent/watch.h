/* Watch: notices that the machine's tree has changed, and says so once for a burst of changes.
 *
 * Three sources: kernel uevents (a live sysfs only), inotify (a tree on an ordinary file system), and a cheap
 * look every `period_ms` at what matters most: which PCI functions, accelerators and device files are there,
 * which driver holds each device, and whether its configuration space answers. The look costs a few
 * microseconds a device; reading everything is left to the scan that follows a change.
 *
 * Borrowed: tree and paths, until watch_free() or the next watch_tree(). */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "agent/inventory/inventory.h"
#include "agent/tree/tree.h"
#include "base/err.h"

struct watch;

struct watch_options {
        const char *path; /* the root directory, or the machine file */
        bool is_file;     /* the latter */
        const struct tree *tree;
        unsigned period_ms;
        void (*changed)(void *userdata, const char *why); /* from the loop; `why` is a literal */
        void *userdata;
};

int watch_new(sd_event *loop, const struct watch_options *options, struct watch **ret, struct err *err);
void watch_free(struct watch *watch); /* accepts NULL */

/* watch_tree() - the tree was opened anew, or scanned: what is looked at from now on.
 * @inventory: the devices to look at; copied */
int watch_tree(struct watch *watch, const struct tree *tree, const struct inventory *inventory);

/* watch_is_live() - is ROOT/sys the sysfs of a running kernel, be the root "/" or a container's "/host"? */
bool watch_is_live(const char *root);

/* watch_mode() - "uevent", "inotify", "look" (a live sysfs without uevents) or "poll": how changes are
 * noticed first. */
const char *watch_mode(const struct watch *watch);
