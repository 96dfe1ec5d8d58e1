"""schema.py: the members of requests. Made from the server's /openapi.json: `make client-types`."""

from typing import Any, Literal, Mapping, Protocol, Sequence, TypedDict, Union


class HasArray(Protocol):
    """An array of NumPy, torch, jax, pandas, xarray, …"""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


Array = Union[HasArray, Sequence[Any]]


AttentionOptions = TypedDict(
    "AttentionOptions",
    {
        "profile": Literal['torch_sdpa', 'torch_mha', 'onnx', 'jax', 'keras', 'flash', 'hf'],
        "compute": Literal['float32', 'float64', 'bfloat16'],
        "num_heads": int,
        "kv_num_heads": int,
        "scale": Union[float, Literal['none']],
        "softcap": float,
        "rope": Union[bool, Literal['half', 'interleaved', 'interleaved_to_half'], Mapping[str, Any]],
        "qk_norm": Union[bool, Literal['rms', 'layer', 'l2'], Mapping[str, Any]],
        "dropout": Union[float, Mapping[str, Any]],
        "training": bool,
        "mechanism": Union[Literal['softmax', 'linear', 'performer'], Mapping[str, Any]],
        "return": Union[Literal['q', 'k', 'v', 'q_rotated', 'k_rotated', 'scores', 'scaled', 'masked', 'attention', 'dropped', 'lse', 'lse_keys', 'entropy', 'sink', 'context', 'concat', 'gated', 'projected', 'contribution', 'residual', 'attention_output', 'feed_forward', 'output', 'present_key', 'present_value', 'attention_mean', 'mask'], Array],
        "heads": Union[Array, str, Mapping[str, Any]],
        "queries": Union[Array, str, Mapping[str, Any]],
        "keys": Union[Array, str, Mapping[str, Any]],
        "digits": int,
        "pool": Mapping[str, Any],
        "top_k": int,
        "dtype": Literal['float32', 'float64', 'float16', 'bfloat16', 'uint8'],
        "alibi": Union[bool, Array, Mapping[str, Any]],
        "relative_bias": Mapping[str, Any],
        "relative_position": Mapping[str, Any],
        "cache": Union[str, Mapping[str, Any]],
        "sinks": Union[Array, Mapping[str, Any]],
        "head_scale": Union[Array, Mapping[str, Any]],
    },
    total=False,
)

LayerOptions = TypedDict(
    "LayerOptions",
    {
        "profile": Literal['torch_sdpa', 'torch_mha', 'onnx', 'jax', 'keras', 'flash', 'hf'],
        "compute": Literal['float32', 'float64', 'bfloat16'],
        "num_heads": int,
        "kv_num_heads": int,
        "scale": Union[float, Literal['none']],
        "softcap": float,
        "residual": bool,
        "rope": Union[bool, Literal['half', 'interleaved', 'interleaved_to_half'], Mapping[str, Any]],
        "qk_norm": Union[bool, Literal['rms', 'layer', 'l2'], Mapping[str, Any]],
        "norm": Union[bool, Literal['layer', 'rms'], Mapping[str, Any]],
        "feed_forward": Mapping[str, Any],
        "dropout": Union[float, Mapping[str, Any]],
        "training": bool,
        "mechanism": Union[Literal['softmax', 'linear', 'performer'], Mapping[str, Any]],
        "return": Union[Literal['q', 'k', 'v', 'q_rotated', 'k_rotated', 'scores', 'scaled', 'masked', 'attention', 'dropped', 'lse', 'lse_keys', 'entropy', 'sink', 'context', 'concat', 'gated', 'projected', 'contribution', 'residual', 'attention_output', 'feed_forward', 'output', 'present_key', 'present_value', 'attention_mean', 'mask'], Array],
        "heads": Union[Array, str, Mapping[str, Any]],
        "queries": Union[Array, str, Mapping[str, Any]],
        "keys": Union[Array, str, Mapping[str, Any]],
        "digits": int,
        "pool": Mapping[str, Any],
        "top_k": int,
        "dtype": Literal['float32', 'float64', 'float16', 'bfloat16', 'uint8'],
        "alibi": Union[bool, Array, Mapping[str, Any]],
        "relative_bias": Mapping[str, Any],
        "relative_position": Mapping[str, Any],
        "cache": Union[str, Mapping[str, Any]],
        "sinks": Union[Array, Mapping[str, Any]],
        "head_scale": Union[Array, Mapping[str, Any]],
    },
    total=False,
)

ModelOptions = TypedDict(
    "ModelOptions",
    {
        "compute": Literal['float32', 'float64', 'bfloat16'],
        "return": Union[Literal['hidden', 'output', 'features', 'logits', 'rollout', 'head_scores', 'experts', 'predictions', 'logit_lens', 'word_scores', 'classes', 'embedding', 'word_times', 'q', 'k', 'v', 'q_rotated', 'k_rotated', 'scores', 'scaled', 'masked', 'attention', 'dropped', 'lse', 'lse_keys', 'entropy', 'sink', 'context', 'concat', 'gated', 'projected', 'contribution', 'residual', 'attention_output', 'feed_forward', 'present_key', 'present_value', 'attention_mean', 'mask'], Array],
        "layers": Union[Array, str, Mapping[str, Any]],
        "heads": Union[Array, str, Mapping[str, Any]],
        "queries": Union[Array, str, Mapping[str, Any]],
        "keys": Union[Array, str, Mapping[str, Any]],
        "digits": int,
        "pool": Mapping[str, Any],
        "top_k": int,
        "dtype": Literal['float32', 'float64', 'float16', 'bfloat16', 'uint8'],
        "ablate": Array,
        "words": Union[Literal['next'], Array],
        "interventions": Array,
        "predictions_k": int,
        "truncate": bool,
        "special_tokens": bool,
    },
    total=False,
)

Masks = TypedDict(
    "Masks",
    {
        "causal": Union[bool, Mapping[str, Any]],
        "attend": Union[bool, int, Array, Mapping[str, Any]],
        "bias": Union[float, Array, Mapping[str, Any]],
        "padding": Union[Array, Mapping[str, Any]],
        "key_lengths": Union[int, Array, Mapping[str, Any]],
        "query_lengths": Union[int, Array, Mapping[str, Any]],
        "window": Array,
        "sliding_window": int,
        "documents": Union[Array, Mapping[str, Any]],
        "blocks": Mapping[str, Any],
    },
    total=False,
)
