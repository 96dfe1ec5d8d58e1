/* job.h: computes the answer to a request whose body has arrived, in this thread or in a compute thread. */
#ifndef HTTP_JOB_H
#define HTTP_JOB_H

#include "http/request.h"

/*
 * Computes a small request in this thread. That takes some ten microseconds. Waking a compute thread, which then wakes
 * this one, takes several times as long. The size of the body is checked before the body is read, and the plan before
 * the computation. False: the request is larger than its body suggested, and must be submitted.
 */
bool job_compute_at_once(struct request *request);

/*
 * Suspends the connection and hands the request to a compute thread, which resumes the connection when the reply is
 * ready. False: the request was refused at once, and the reply is ready.
 */
bool job_submit(struct request *request);

#endif
