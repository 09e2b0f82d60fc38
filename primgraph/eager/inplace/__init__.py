"""Operations in place, views and shared storage of tensors."""
