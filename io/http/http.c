/* What a handler may ask of its request. */
#include "io/http/http.h"

#include <microhttpd.h>

#include "io/http/http_connections.h"

const char *http_request_query(const struct http_request *request, const char *name)
{
        return MHD_lookup_connection_value(request->internal, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_request_header(const struct http_request *request, const char *name)
{
        return MHD_lookup_connection_value(request->internal, MHD_HEADER_KIND, name);
}

bool http_request_is_certified(const struct http_request *request)
{
        return http_connections_of(request->internal)->certified;
}

const struct peer *http_request_peer(const struct http_request *request)
{
        const struct http_connection *c = http_connections_of(request->internal);

        return c->has_peer ? &c->peer : NULL;
}
