/* server.c: the counters that all requests of one server share. */
#include "http/connections/server.h"

/* The last step of SplitMix64. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t server_random(struct http_server *server)
{
    const uint64_t number = atomic_fetch_add_explicit(&server->ids_made, 1, memory_order_relaxed);
    return mix(server->id_seed + number * UINT64_C(0x9e3779b97f4a7c15));
}

bool server_job_in(struct http_server *server)
{
    if (!server->is_closed)
        server->jobs++;
    return !server->is_closed;
}

static void count_out(struct http_server *server, size_t *counter)
{
    pthread_mutex_lock(&server->lock);
    if (--*counter == 0)
        pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

void server_job_out(struct http_server *server)
{
    count_out(server, &server->jobs);
}

void server_request_out(struct http_server *server)
{
    count_out(server, &server->requests);
}
