/* HTTP pages: an answer that many connections share, so that a hundred readers cost one rendering and one
 * copy.
 *
 * While an answer of a shared route (io/http/http.h) is still on its way to somebody, or many are connected,
 * those who ask within a second get the same one; who asks alone gets it fresh. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "io/http/http.h"

#define HTTP_PAGES_MAX 4 /* shared routes of a server; of more the rest is not shared */

struct http_pages_page; /* counted: its keeper and each answer that is not sent yet */

/* Of a server; zero at first. */
struct http_pages {
        struct {
                const struct http_route *route;
                struct http_pages_page *page;
                uint64_t made_usec;
        } kept[HTTP_PAGES_MAX];
};

/* http_pages_share() - @connections: how many there are. Return: is there one that may be shared? It is in
 * @reply then. */
bool http_pages_share(const struct http_pages *pages, const struct http_route *route, unsigned connections,
                      uint64_t now_usec, struct http_reply *reply);

/* http_pages_keep() - the body of a reply becomes a page that others may share, if it is a good one. */
void http_pages_keep(struct http_pages *pages, const struct http_route *route, uint64_t now_usec,
                     struct http_reply *reply);
void http_pages_free(struct http_pages *pages);

/* http_pages_new() - one of somebody's own keeping, who holds the first reference. @bytes: malloc'd, taken
 * over in any case; @content_type: static. Return: NULL without memory. */
struct http_pages_page *http_pages_new(char *bytes, size_t size_bytes, const char *content_type);
struct http_pages_page *http_pages_ref(struct http_pages_page *page);
void http_pages_answer(struct http_pages_page *page, struct http_reply *reply); /* with one more reference */

const char *http_pages_bytes(const struct http_pages_page *page, size_t *ret_bytes);
void http_pages_unref(void *userdata); /* a page; accepts NULL */
