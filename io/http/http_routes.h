/* HTTP routes: which handler a request is for. Pure. */
#pragma once

#include <stddef.h>

#include "io/http/http.h"

/* http_routes_find() - NULL where there is none. HEAD is asked as GET. @routes: ends with method == NULL */
const struct http_route *http_routes_find(const struct http_route *routes, const char *method,
                                          const char *path);

/* http_routes_methods() - the methods a path has routes for, "GET, POST"; "" when the path is not known. */
void http_routes_methods(const struct http_route *routes, const char *path, char *methods,
                         size_t methods_bytes);
