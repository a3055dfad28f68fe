/* Runbooks: what to do about an alert, from the program itself: the pages of docs/runbooks are compiled in.
 * The alerts' runbook_url leads here. */
#pragma once

#include "io/http/http.h"

#define RUNBOOKS_PATH "/runbooks/"

/* runbooks_handler() - an http_route's handler: RUNBOOKS_PATH and a name is that page, RUNBOOKS_PATH alone
 * the list of them; 404 with that list where there is no such page. No path is made of what was asked. */
void runbooks_handler(void *userdata, const struct http_request *request, struct http_reply *reply);

bool runbooks_has(const char *name); /* is there a page of this name? */
