/* Store in a directory, inside: its state, which the pieces of this folder are given. store_dir.c owns it:
 * the queue of files to read, inotify, the directory that may go away. Nobody else includes this. */
#pragma once

#include "store/directory/commitments.h"
#include "store/directory/journal.h"
#include "store/directory/objects.h"
#include "store/directory/overlays.h"
#include "store/store_internal.h"

struct bind_request;

struct store_dir {
        struct store store;
        char *path;
        int fd;
        struct objects objects;
        struct overlays overlays;
        struct commitments commitments;
        struct object_file *queue, **queue_end; /* to be read */
        struct object_file *gone;               /* no longer there; forgotten once the queue is empty */
        struct journal bindings, evictions;
        struct bind_request *binds, **binds_end;
        sd_event_source *inotify, *working, *pausing, *binding, *reviving;
        uint64_t lost_since_usec; /* the directory is gone since; 0 = it is there */
        uint64_t opened_usec;
        bool synced, refreshing;
};

/* store_dir_queue() - a file is to be read (again). @first: before the others. Return: NULL without memory.
 */
struct object_file *store_dir_queue(struct store_dir *d, const char *name, bool first);

bool store_dir_is_object_file(const char *name);

struct stat;
uint64_t store_dir_mtime(const struct stat *st); /* microseconds, CLOCK_REALTIME */
