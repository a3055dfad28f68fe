/* JSON items: walks the objects of a Kubernetes list ("kubectl get -o json", an API server's PodList) in
 * place, so that a list of 50,000 pods never becomes one tree. A file that is no list is its own only item.
 *
 * Works on the bytes alone; nothing is allocated. json_items_open() checks that the text is complete (all
 * strings and brackets are closed, nothing follows), which tells a half-written file from a whole one;
 * whether each item is valid JSON is found out by the parser that gets it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct json_items {
        const char *at, *end; /* the rest of the items */
        bool is_list;
        char kind[64]; /* of the items, for lists whose items do not say ("PodList": "Pod"); or "" */
        char resource_version[64]; /* metadata.resourceVersion of a list, or "" */
        char continue_[2048];      /* metadata.continue of a list, or "" */
        bool continue_cut;         /* the token was longer than that */
};

/* json_items_open() - Return: 0; -ENODATA for nothing but blanks; -EBADMSG (incomplete, or no object). */
int json_items_open(const char *bytes, size_t size_bytes, struct json_items *ret, struct err *err);

/* json_items_next() - the next item's bytes. Return: false at the end. */
bool json_items_next(struct json_items *items, const char **ret_bytes, size_t *ret_size_bytes);
