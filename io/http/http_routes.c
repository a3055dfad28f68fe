/* Exact paths, and those that end with a star. */
#include "io/http/http_routes.h"

#include <string.h>

#include "base/text.h"

static bool matches(const struct http_route *route, const char *path)
{
        size_t length = strlen(route->path);

        if (length > 0 && route->path[length - 1] == '*')
                return strncmp(route->path, path, length - 1) == 0;
        return strcmp(route->path, path) == 0;
}

void http_routes_methods(const struct http_route *routes, const char *path, char *methods,
                         size_t methods_bytes)
{
        struct text list = { 0 };

        for (const struct http_route *route = routes; route->method != NULL; route++)
                if (matches(route, path))
                        text_printf(&list, "%s%s", list.size_bytes > 0 ? ", " : "", route->method);
        (void) text_copy(methods, methods_bytes, list.data != NULL ? list.data : "");
        text_free(&list);
}

const struct http_route *http_routes_find(const struct http_route *routes, const char *method,
                                          const char *path)
{
        const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;

        for (const struct http_route *route = routes; route->method != NULL; route++)
                if (strcmp(route->method, wanted) == 0 && matches(route, path))
                        return route;
        return NULL;
}
