/* Tree: read-only access to a machine's files under one root: "/", a directory, or a machine file.
 *
 * Paths are relative to the root ("sys/bus/pci/devices"; a leading '/' is allowed), never leave it (".." and
 * absolute symbolic links are resolved inside, at most TREE_LINKS_MAX of them), and every read has a maximum.
 * FIFOs, devices and sockets are never opened. Not thread-safe: one tree, one user.
 *
 * Results: 0 or a length; -ENOENT (not there), -ELOOP (links), -E2BIG (larger than the caller allows),
 * -EINVAL (not the kind of file that was asked for, or not a number), -EDQUOT (the budget is spent), other
 * negative errno from the system. Absence is so common here that readers take no struct err. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/text.h"

#define TREE_PATH_BYTES  1024    /* longest path, resolved or not, with its NUL */
#define TREE_LINKS_MAX   40      /* symbolic links followed for one path, as the kernel does */
#define TREE_NAMES_MAX   8192    /* entries of one directory; larger ones are refused */
#define TREE_VALUE_BYTES 4096    /* what one sysfs attribute can hold */
#define TREE_FILE_BYTES  1048576 /* what a longer procfs or firmware file may hold for us */

enum tree_kind {
        TREE_ABSENT,
        TREE_FILE,
        TREE_DIRECTORY,
        TREE_LINK, /* in records alone: tree_kind() follows links, and one that leads nowhere is absent */
        TREE_CHARACTER, /* a device node */
        TREE_BLOCK,
        TREE_OTHER, /* FIFO, socket */
};

struct tree; /* opened by tree_directory.h or tree_machine.h */

void tree_close(struct tree *tree); /* accepts NULL */

const char *tree_root(const struct tree *tree); /* as given; for messages */
bool tree_is_live(const struct tree *tree);     /* the root is "/" */

/* tree_kind() - what a path leads to, links followed. */
enum tree_kind tree_kind(const struct tree *tree, const char *path);
bool tree_has(const struct tree *tree, const char *path); /* anything but TREE_ABSENT and TREE_LINK */

/* tree_read() - up to size_bytes from the start of a regular file. Return: bytes read (a longer file is cut
 * silently: the caller chose the size), or a negative errno. */
ssize_t tree_read(const struct tree *tree, const char *path, void *buffer, size_t size_bytes);

/* tree_read_text() - a whole small file as a string without trailing white space.
 * Return: its length; -E2BIG if it does not fit; -EBADMSG if it holds a NUL. `text` is "" on failure. */
ssize_t tree_read_text(const struct tree *tree, const char *path, char *text, size_t text_bytes);

/* tree_read_int64() - decimal. tree_read_hex64() - with or without 0x. `ret` is written on success only. */
int tree_read_int64(const struct tree *tree, const char *path, int64_t *ret);
int tree_read_hex64(const struct tree *tree, const char *path, uint64_t *ret);

/* Names of a directory's entries, sorted by strcmp, without those that begin with a dot. Zero-initialise,
 * release with tree_names_free(). */
struct tree_names {
        char **names;
        size_t count, capacity;
};

int tree_list(const struct tree *tree, const char *path, struct tree_names *ret);
void tree_names_free(struct tree_names *names); /* accepts half-built ones */

/* tree_realpath() - the path with every link followed, relative to the root, no leading '/'. The target need
 * not be a file; it must exist. Return: its length. `ret_bytes` is usually TREE_PATH_BYTES. */
ssize_t tree_realpath(const struct tree *tree, const char *path, char *ret, size_t ret_bytes);

/* tree_link_name() - the last component of what a link points to ("driver" -> "nvidia"), whether the target
 * exists or not. A real directory gives its own name. Return: its length. */
ssize_t tree_link_name(const struct tree *tree, const char *path, char *ret, size_t ret_bytes);

/* tree_budget() - allow this many further operations (UINT64_MAX at first), and forget what was kept from
 * earlier ones: call it before each scan. Each call above is one, and each component of a path that is
 * walked. Past it everything answers -EDQUOT / TREE_ABSENT, and tree_exhausted() is true: the way to refuse a
 * hostile tree without a clock. */
void tree_budget(const struct tree *tree, uint64_t operations);
bool tree_exhausted(const struct tree *tree);

/* tree_starved() - since the last tree_budget(): was there something that could not be looked at, for want of
 * descriptors or memory? It need not be absent, whatever it was taken for. Return: 0, or -EMFILE, -ENFILE,
 * -ENOMEM or -EAGAIN. */
int tree_starved(const struct tree *tree);
