/* The settings of a connection, and what its errors mean. */
#include "io/http/http_handle.h"

#include <errno.h>

#include "io/http/http_client_internal.h"

#define CONNECT_TIMEOUT_MSEC 10000L
#define KEEPALIVE_SEC        30L
#define RECEIVE_BUFFER_BYTES (128L * 1024)

static void set_tls(const struct http_client *client, CURL *easy)
{
        if (client->insecure) {
                (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
                (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
        }
        (void) curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2); /* at least */
#if LIBCURL_VERSION_NUM >= 0x075700
        (void) curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* a CA that is rotated counts at once */
#endif
        if (client->ca_file != NULL)
                (void) curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_file);
        if (client->certificate_file != NULL)
                (void) curl_easy_setopt(easy, CURLOPT_SSLCERT, client->certificate_file);
        if (client->key_file != NULL)
                (void) curl_easy_setopt(easy, CURLOPT_SSLKEY, client->key_file);
}

void http_handle_set(const struct http_client *client, CURL *easy)
{
        (void) curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        (void) curl_easy_setopt(easy, CURLOPT_PROXY, client->proxy != NULL ? client->proxy : "");
        (void) curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
        (void) curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        (void) curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MSEC);
        (void) curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
        (void) curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_SEC);
        (void) curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_SEC / 3);
        (void) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER_BYTES);
        (void) curl_easy_setopt(easy, CURLOPT_SHARE, client->share);
        (void) curl_easy_setopt(easy, CURLOPT_USERAGENT,
                                client->user_agent != NULL ? client->user_agent : "remuda");
        if (client->unix_socket != NULL && client->unix_socket[0] == '@')
                (void) curl_easy_setopt(easy, CURLOPT_ABSTRACT_UNIX_SOCKET, client->unix_socket + 1);
        else if (client->unix_socket != NULL)
                (void) curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->unix_socket);
        if (client->resolve_to != NULL)
                (void) curl_easy_setopt(easy, CURLOPT_CONNECT_TO, client->resolve_to);
        set_tls(client, easy);
}

int http_handle_error(CURLcode code)
{
        switch (code) {
        case CURLE_OK:
                return 0;
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
                return -EHOSTUNREACH;
        case CURLE_COULDNT_CONNECT:
                return -ECONNREFUSED;
        case CURLE_OPERATION_TIMEDOUT:
                return -ETIMEDOUT;
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CACERT_BADFILE:
                return -EPROTO;
        case CURLE_OUT_OF_MEMORY:
                return -ENOMEM;
        case CURLE_URL_MALFORMAT:
                return -EINVAL;
        default:
                return -EPIPE; /* it ended, or made no sense, in the middle */
        }
}
