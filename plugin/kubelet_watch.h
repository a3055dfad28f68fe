/* Kubelet watch: a kubelet that restarts wipes the sockets in its directory and makes its own anew. The
 * directory is watched, and looked at every second in any case: events can be missed, inotify can be used up,
 * the directory itself can go and come back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/err.h"

struct kubelet_watch;

struct kubelet_watch_options {
        const char *directory;           /* borrowed for its life; need not exist */
        void (*arrived)(void *userdata); /* a kubelet is there that was not, or another one */
        void (*left)(void *userdata);    /* its socket is gone */
        void (*check)(void *userdata);   /* every second, and when one of our sockets may be gone */
        void *userdata;
};

/* kubelet_watch_new() - looks at once: `arrived` may be called from within. */
int kubelet_watch_new(sd_event *loop, const struct kubelet_watch_options *options, struct kubelet_watch **ret,
                      struct err *err);
void kubelet_watch_free(struct kubelet_watch *watch); /* accepts NULL */

bool kubelet_watch_is_present(const struct kubelet_watch *watch);     /* accepts NULL: no */
uint64_t kubelet_watch_seen_total(const struct kubelet_watch *watch); /* times that a new socket was met */
