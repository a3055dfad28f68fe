/* UI store: the page of a saved cluster, for `remuda ui --store dir:PATH`: read here, by the options of the
 * extender as they are given here, and live as long as the folder changes. */
#pragma once

#include "cli/command/cluster_arguments.h"
#include "io/http/http.h"

struct ui_store;

/* ui_store_new() - Return: 0, or as cluster_arguments_open() says. Arguments are borrowed. */
int ui_store_new(const struct cluster_arguments *arguments, struct ui_store **ret, struct err *err);
void ui_store_free(struct ui_store *store);            /* accepts NULL */
void ui_store_close_page(struct ui_store *store);      /* before the server */
sd_event *ui_store_loop(const struct ui_store *store); /* borrowed */

/* ui_store_get() - a request of PAGE_ROUTES or of a file. ui_store_whatif() - POST /v1/whatif. */
void ui_store_get(struct ui_store *store, const struct http_request *request, struct http_reply *reply);
void ui_store_whatif(struct ui_store *store, const struct http_request *request, struct http_reply *reply);
