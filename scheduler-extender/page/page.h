/* Page: the page to look at, and the JSON that it draws from: GET /, its files, /v1/fleet, /v1/node,
 * /v1/waiting, /v1/jobs, /v1/agents and /v1/changes (docs/reference/page.md). Read only.
 *
 * Served by the extender and by `remuda ui` on a saved store, from a cluster that its owner tells of: what
 * the ledger does not keep (devices one by one, jobs' progress) is kept here, about 100 bytes a chip. Large
 * answers are written by a child (page_answers.h); changes are told to whoever looks on (page_changes.h), at
 * most every 200 ms, PAGE_NODES_A_TIME nodes at a time, and as slowly as they are many. All on the owner's
 * loop. */
#pragma once

#include <jansson.h>
#include <systemd/sd-event.h>

#include "agent/inventory/inventory.h"
#include "io/http/http.h"
#include "scheduler-extender/ledger/cluster.h"

#define PAGE_NODES_A_TIME 64

struct page;

struct page_options {
        const char *name;                      /* of the cluster, "" = not known; copied */
        bool (*has_runbook)(const char *name); /* is it served at /runbooks/NAME? NULL = none is */
};

/* page_open() - it answers 503 until page_attach(). Return: 0 or a negative errno. */
int page_open(sd_event *loop, const struct page_options *options, struct page **ret, struct err *err);
void page_close(struct page *page); /* before the server, and before the cluster; accepts NULL */

/* page_attach() - what it shows; lives until page_close(). */
void page_attach(struct page *page, struct cluster *cluster);

/* What the cluster tells: as `told`, `observed` and `changed` of struct cluster_options. page may be NULL. */
void page_told(struct page *page, const char *node, const struct inventory *inventory);
void page_observed(struct page *page, enum store_kind kind, const char *key, const json_t *object);
void page_changed(struct page *page);

/* page_refuses() - a route's guard: what a foreign page makes a browser send is answered with 403. */
bool page_refuses(const struct http_request *request, struct http_reply *reply);

/* page_answer() - a request of one of PAGE_ROUTES. */
void page_answer(struct page *page, const struct http_request *request, struct http_reply *reply);

size_t page_viewers(const struct page *page); /* who are told of changes */

extern const char *const page_headers[]; /* of every answer */

/* Rows of a table of routes; those of the files are made by #define PAGE_ASSET(path) PAGE_ROUTE(handler,
 * path) and #include "scheduler-extender/page_paths.inc". */
#define PAGE_ROUTE(handler_, path_)                                                                          \
        { .method = "GET",                                                                                   \
          .path = (path_),                                                                                   \
          .handler = (handler_),                                                                             \
          .refuses = page_refuses,                                                                           \
          .headers = page_headers },
#define PAGE_ROUTES(handler_)                                                                                \
        PAGE_ROUTE(handler_, "/v1/fleet")                                                                    \
        PAGE_ROUTE(handler_, "/v1/node")                                                                     \
        PAGE_ROUTE(handler_, "/v1/waiting")                                                                  \
        PAGE_ROUTE(handler_, "/v1/jobs")                                                                     \
        PAGE_ROUTE(handler_, "/v1/agents")                                                                   \
        PAGE_ROUTE(handler_, "/v1/changes")
